/* The identity and the fingerprint of a unit, the input that is kept of it, and the
 * request for its key. */
#include "aws/lambda/unit.h"

#include "aws/lambda/answer.h"
#include "aws/lambda/http.h"
#include "aws/lambda/lambda.h"
#include "core/error.h"
#include "key/selector.h"

#include <stdio.h>

static bool has_no_key(const struct idem_lambda *lambda,
                       const struct idem__lambda_unit *unit)
{
    const char *methods = lambda->options->methods;
    uint32_t method;

    if (unit->rule->shape != IDEM__LAMBDA_HTTP) {
        return false;
    }
    method = idem__lambda_find(&lambda->tree, 0, unit->rule->parts[0]);
    return !idem__lambda_is_in_list(methods == NULL ? "POST,PATCH" : methods,
                                    idem__lambda_text_of(&lambda->tree,
                                                         method));
}

static bool needs_key(const struct idem_lambda *lambda,
                      const struct idem__lambda_unit *unit)
{
    return unit->rule->shape != IDEM__LAMBDA_HTTP || !lambda->options->keyless;
}

/* ---- The key ----------------------------------------------------------- */

/* Warns of a weak key, once, because it is the same for every event. */
static void warn_of_weakness(struct idem_lambda *lambda,
                             const struct idem__lambda_unit *unit)
{
    struct idem_slice id = idem_str(lambda->now->request_id);

    if (!lambda->warned && unit->key.len == id.len &&
        memcmp(unit->key.base, id.base, id.len) == 0) {
        idem__lambda_log(
            lambda->now, "WARN", NULL,
            "the key is the id of the request, so only Lambda's own retries "
            "are recognised; set "
            "IDEM_LAMBDA_KEY");
        lambda->warned = true;
    }
}

/* Finds the key. Sets unit->is_open if there is none, and none is needed. */
static int find_key(struct idem_lambda *lambda, struct idem__lambda_unit *unit,
                    struct idem_error *error)
{
    bool selected = idem__lambda_selects_has(lambda, IDEM__LAMBDA_KEY);
    int rc;

    if (selected) {
        rc = idem__lambda_select(lambda, IDEM__LAMBDA_KEY,
                                 idem__lambda_unit_text(lambda, unit),
                                 &unit->key, error);
    } else {
        rc = idem__lambda_key(unit->rule, &lambda->tree, unit->at,
                              lambda->now->request_id, &unit->key, error);
    }
    if (rc == IDEM_ENOTFOUND) {
        unit->is_open = !needs_key(lambda, unit);
        unit->refusal = selected ? NULL : &idem__lambda_keyless;
        return unit->is_open ? 0 : IDEM_EINVALID;
    }
    if (rc != 0) {
        return rc;
    }
    if (!selected && unit->rule->row.strength == IDEM_LAMBDA_PER_DELIVERY) {
        warn_of_weakness(lambda, unit);
    }
    return unit->key.failed ? idem__error_plain(error, IDEM_ENOMEM)
                            : idem__key_shorten(&unit->key, error);
}

/* Appends the caller, which the selector of the options selects. */
static int add_caller(struct idem_lambda *lambda,
                      struct idem__lambda_unit *unit, struct idem_error *error)
{
    int rc;

    idem__buffer_str(&unit->scope, "/");
    rc = idem__lambda_select(lambda, IDEM__LAMBDA_SCOPE,
                             idem__lambda_unit_text(lambda, unit), &unit->scope,
                             error);
    if (rc == 0 && unit->scope.len > IDEM_SCOPE_MAX) {
        rc = idem__error(error, IDEM_EINVALID,
                         "the scope is longer than %d bytes", IDEM_SCOPE_MAX);
    }
    if (rc == IDEM_EINVALID && unit->rule->shape == IDEM__LAMBDA_HTTP) {
        unit->refusal = &idem__lambda_unauthenticated;
    }
    return rc;
}

/* Finds the scope, so that two functions never share a record by accident. Nor may two
 * clients, which choose their own keys: one could get the response of the other. */
static int find_scope(struct idem_lambda *lambda,
                      struct idem__lambda_unit *unit, struct idem_error *error)
{
    int rc = 0;

    if (unit->rule->shape == IDEM__LAMBDA_HTTP &&
        lambda->options->scope == NULL) {
        unit->refusal = &idem__lambda_scope_unset;
        return idem__error(error, IDEM_EINVALID, "%s",
                           idem__lambda_scope_mending);
    }
    idem__buffer_str(&unit->scope, lambda->options->function);
    if (idem__lambda_selects_has(lambda, IDEM__LAMBDA_SCOPE)) {
        rc = add_caller(lambda, unit, error);
    }
    if (rc != 0) {
        return rc;
    }
    return unit->scope.failed ? idem__error_plain(error, IDEM_ENOMEM) : 0;
}

/* ---- The fingerprint --------------------------------------------------- */

/* Makes the fingerprint from selected values in place of the body. For HTTP, method, path
 * and query still count, so that no path gets the response of another one. */
static int add_selected(struct idem_lambda *lambda,
                        struct idem__lambda_unit *unit,
                        const struct idem__lambda_parts *parts,
                        struct idem_error *error)
{
    bool is_http = unit->rule->shape == IDEM__LAMBDA_HTTP;
    struct idem__buffer selected = {.len = 0};
    int rc = idem__lambda_select(lambda, IDEM__LAMBDA_FINGERPRINT,
                                 idem__lambda_unit_text(lambda, unit),
                                 &selected, error);

    if (rc == 0) {
        rc = selected.failed
                 ? IDEM_ENOMEM
                 : idem_http_fingerprint_selected(parts->part,
                                                  is_http ? parts->len : 0,
                                                  idem__buffer_slice(&selected),
                                                  idem_bytes(NULL, 0),
                                                  unit->fingerprint);
        rc = rc == 0 ? 0 : idem__error_plain(error, rc);
    }
    idem__buffer_free(&selected);
    return rc;
}

static int find_fingerprint(struct idem_lambda *lambda,
                            struct idem__lambda_unit *unit,
                            struct idem_error *error)
{
    const char *option = lambda->options->fingerprint;
    struct idem__lambda_parts parts = {.len = 0};
    int rc;

    if (option != NULL && strcmp(option, "none") == 0) {
        return 0;
    }
    rc = idem__lambda_read_parts(unit->rule, &lambda->tree, unit->at, &parts,
                                 error);
    if (rc == 0 && idem__lambda_selects_has(lambda, IDEM__LAMBDA_FINGERPRINT)) {
        rc = add_selected(lambda, unit, &parts, error);
    } else if (rc == 0 &&
               idem_http_fingerprint(parts.part, parts.len, parts.type,
                                     parts.body, idem_bytes(NULL, 0),
                                     unit->fingerprint) != 0) {
        rc = idem__error_plain(error, IDEM_ENOMEM);
    }
    unit->has_fingerprint = rc == 0;
    idem__buffer_free(&parts.json);
    idem__buffer_free(&parts.decoded);
    return rc;
}

/* ---- All of it --------------------------------------------------------- */

int idem__lambda_unit_init(struct idem_lambda *lambda,
                           struct idem__lambda_unit *unit,
                           struct idem_error *ret_error)
{
    int rc;

    unit->is_open = has_no_key(lambda, unit);
    if (unit->is_open) {
        return 0;
    }
    unit->event_ms = idem__lambda_time(unit->rule, &lambda->tree, unit->at);
    rc = find_key(lambda, unit, ret_error);
    if (rc != 0 || unit->is_open) {
        return rc;
    }
    rc = find_scope(lambda, unit, ret_error);
    return rc == 0 ? find_fingerprint(lambda, unit, ret_error) : rc;
}

void idem__lambda_unit_finish(struct idem__lambda_unit *unit)
{
    idem__buffer_free(&unit->scope);
    idem__buffer_free(&unit->key);
}

/* ---- The event, and what is kept of it ---------------------------------- */

void idem__lambda_unit_event(const struct idem_lambda *lambda,
                             const struct idem__lambda_unit *unit,
                             struct idem__buffer *to)
{
    struct idem_slice event = lambda->tree.json;
    struct idem_slice one = idem__lambda_unit_text(lambda, unit);
    struct idem_slice all =
        idem__tree_raw(&lambda->tree,
                       idem__tree_at(&lambda->tree,
                                     idem__lambda_records(unit->rule,
                                                          &lambda->tree)));
    size_t before = (size_t)((const char *)all.base - (const char *)event.base);

    idem__buffer_reset(to, /* keep= */ 1 << 20);
    idem__buffer_add(to, event.base, before);
    if (unit->list.base != NULL) {
        idem__buffer_str(to, "{");
        idem__json_string(to, unit->list);
        idem__buffer_str(to, ":");
    }
    idem__buffer_str(to, "[");
    idem__buffer_add(to, one.base, one.len);
    idem__buffer_str(to, unit->list.base != NULL ? "]}" : "]");
    idem__buffer_add(to, (const char *)all.base + all.len,
                     event.len - before - all.len);
}

/* Writes an object with those members of the object @at that @names lists, and leaves it
 * open. */
static void pick(const struct idem__tree *event, uint32_t at, const char *names,
                 struct idem__buffer *to)
{
    const struct idem__tree_node *node = idem__tree_at(event, at);
    uint32_t end = node->kind == IDEM__TREE_OBJECT ? node->end : 0;
    bool any = false;

    idem__buffer_str(to, "{");
    for (at++; at < end; at = idem__tree_at(event, at)->end) {
        struct idem_slice name =
            idem__tree_name(event, idem__tree_at(event, at));
        struct idem_slice raw = idem__tree_raw(event, idem__tree_at(event, at));

        if (idem__lambda_is_in_list(names, name)) {
            idem__buffer_str(to, any ? "," : "");
            idem__json_string(to, name);
            idem__buffer_str(to, ":");
            idem__buffer_add(to, raw.base, raw.len);
            any = true;
        }
    }
}

/* Writes such an object, closed, as the member @name for the value at @place, if there is
 * one. */
static void pick_member(const struct idem__tree *event, const char *place,
                        const char *name, const char *names,
                        struct idem__buffer *to)
{
    uint32_t at = idem__lambda_find(event, 0, place);

    if (at != 0) {
        idem__json_name(to, name);
        pick(event, at, names, to);
        idem__buffer_str(to, "}");
    }
}

/* Writes the part of an HTTP event that is kept. The event also has the credentials of its
 * sender: Authorization, cookies, API keys, the claims of a token. People read the store,
 * so only the members that are named here are kept. */
static void keep_request(const struct idem__tree *event,
                         struct idem__buffer *to)
{
    static const char headers[] =
        "Idempotency-Key,Content-Type,Content-Encoding,Content-Language";

    pick(event, 0,
         "version,resource,routeKey,httpMethod,method,path,rawPath,raw_path,"
         "pathParameters,queryStringParameters,multiValueQueryStringParameters,"
         "rawQueryString,query_string_parameters,body,isBase64Encoded,"
         "is_base64_encoded",
         to);
    pick_member(event, "headers", "headers", headers, to);
    pick_member(event, "multiValueHeaders", "multiValueHeaders", headers, to);
    idem__json_name(to, "requestContext");
    pick(event, idem__lambda_find(event, 0, "requestContext"), "serviceArn",
         to);
    pick_member(event, "requestContext.http", "http", "method,path", to);
    pick_member(event, "requestContext.elb", "elb", "targetGroupArn", to);
    idem__buffer_str(to, "}}");
}

/* Writes the input that is kept: the event as its handler gets it, but of an HTTP event
 * only the request, without credentials. */
static void keep_input(const struct idem_lambda *lambda,
                       const struct idem__lambda_unit *unit,
                       struct idem__buffer *to)
{
    struct idem_slice text = idem__lambda_unit_text(lambda, unit);

    if (unit->rule->records != NULL) {
        idem__lambda_unit_event(lambda, unit, to);
        return;
    }
    idem__buffer_reset(to, /* keep= */ 1 << 20);
    if (unit->rule->shape == IDEM__LAMBDA_HTTP) {
        keep_request(&lambda->tree, to);
    } else {
        idem__buffer_add(to, text.base, text.len);
    }
}

/* ---- The request -------------------------------------------------------- */

/* We have seen Lambda kill a function 0.7 s after its deadline, and the clocks of two
 * hosts differ. */
#define LEASE_MARGIN_MS 2000

/* Returns the length of the lease: longer than the function can live, so that no other
 * delivery takes over while it still works. */
static int64_t lease_of(const struct idem_lambda *lambda)
{
    int64_t left = idem__lambda_left_ms(lambda->now);
    int64_t lease = (left < 0 ? 0 : left) + LEASE_MARGIN_MS;
    int64_t min = idem_store_lease_min_ms(lambda->store);

    return lease < min ? min : lease;
}

int idem__lambda_unit_request(struct idem_lambda *lambda,
                              const struct idem__lambda_unit *unit,
                              char owner[IDEM__LAMBDA_OWNER_MAX],
                              struct idem_request *ret_request)
{
    const struct idem_lambda_options *options = lambda->options;

    (void)snprintf(owner, IDEM__LAMBDA_OWNER_MAX, "%.*s/%s",
                   IDEM_OWNER_MAX - 130, options->function,
                   lambda->now->request_id);
    *ret_request = (struct idem_request)IDEM_REQUEST_INIT;
    ret_request->scope = idem__buffer_slice(&unit->scope);
    ret_request->key = idem__buffer_slice(&unit->key);
    ret_request->owner = idem_str(owner);
    ret_request->on_expired_lease = options->on_expired_lease;
    ret_request->attempts_max = options->attempts_max;
    ret_request->lease_ms = lease_of(lambda);
    ret_request->retention_ms = options->retention_ms < ret_request->lease_ms
                                    ? ret_request->lease_ms
                                    : options->retention_ms;
    ret_request->expect_ms = idem__lambda_left_ms(lambda->now);
    if (ret_request->expect_ms < 0) {
        ret_request->expect_ms = 0;
    }
    if (unit->has_fingerprint) {
        ret_request->fingerprint =
            idem_bytes(unit->fingerprint, sizeof(unit->fingerprint));
    }
    if (options->keep_input) {
        keep_input(lambda, unit, &lambda->input);
        ret_request->input = idem__buffer_slice(&lambda->input);
    }
    return options->keep_input && lambda->input.failed ? IDEM_ENOMEM : 0;
}
