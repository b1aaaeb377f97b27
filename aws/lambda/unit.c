/* Identity and fingerprint of a unit, and the request for its key. */
#include "aws/lambda/unit.h"

#include "aws/lambda/answer.h"
#include "aws/lambda/event_time.h"
#include "aws/lambda/http.h"
#include "aws/lambda/input.h"
#include "aws/lambda/list.h"
#include "aws/lambda/log.h"
#include "aws/lambda/select.h"
#include "core/error.h"
#include "key/selector.h"

#include <stdio.h>

static bool has_no_key(const struct idem_lambda *lambda,
                       const struct idem__lambda_unit *unit)
{
    const char *methods = lambda->options->methods;

    return unit->rule->shape == IDEM__LAMBDA_HTTP &&
           !idem__lambda_is_in_list(methods == NULL ? "POST,PATCH" : methods,
                                    unit->rule->method(unit->json));
}

static bool needs_key(const struct idem_lambda *lambda,
                      const struct idem__lambda_unit *unit)
{
    return unit->rule->shape != IDEM__LAMBDA_HTTP || !lambda->options->keyless;
}

/* ---- The key ----------------------------------------------------------- */

/* Said once: it is the same for every event. */
static void warn_of_weakness(struct idem_lambda *lambda,
                             const struct idem__lambda_unit *unit)
{
    struct idem_slice id = idem_str(lambda->now->request_id);

    if (!lambda->warned && unit->key.len == id.len &&
        memcmp(unit->key.base, id.base, id.len) == 0) {
        idem__lambda_log(lambda->now, "WARN", NULL,
                         "the key is the id of the request: only what Lambda "
                         "itself sends again is recognised; set "
                         "IDEM_LAMBDA_KEY");
        lambda->warned = true;
    }
}

/* unit->is_open: the unit has no key, and needs none. */
static int find_key(struct idem_lambda *lambda, struct idem__lambda_unit *unit,
                    struct idem_error *error)
{
    const char *why;
    int rc;

    if (idem__lambda_selects_has(lambda, IDEM__LAMBDA_KEY)) {
        rc = idem__lambda_select(lambda, IDEM__LAMBDA_KEY, unit->text,
                                 &unit->key, error);
        if (rc == IDEM_ENOTFOUND) {
            unit->is_open = !needs_key(lambda, unit);
            return unit->is_open ? 0 : IDEM_EINVALID;
        }
        if (rc != 0) {
            return rc;
        }
        why = NULL;
    } else {
        why = unit->rule->key(unit->json, lambda->now, &unit->key);
        if (unit->rule->row.strength == IDEM_LAMBDA_PER_DELIVERY) {
            warn_of_weakness(lambda, unit);
        }
    }
    if (why == idem__lambda_no_header) {
        unit->is_open = !needs_key(lambda, unit);
        unit->refusal = &idem__lambda_keyless;
    }
    if (unit->is_open) {
        return 0;
    }
    if (why != NULL) {
        return idem__error(error, IDEM_EINVALID, "%s", why);
    }
    return unit->key.failed ? idem__error_plain(error, IDEM_ENOMEM)
                            : idem__key_shorten(&unit->key, error);
}

/* Appends the caller, by the selector of the options. */
static int add_caller(struct idem_lambda *lambda,
                      struct idem__lambda_unit *unit, struct idem_error *error)
{
    int rc;

    idem__buffer_str(&unit->scope, "/");
    rc = idem__lambda_select(lambda, IDEM__LAMBDA_SCOPE, unit->text,
                             &unit->scope, error);
    if (rc == 0 && unit->scope.len > IDEM_SCOPE_MAX) {
        rc = idem__error(error, IDEM_EINVALID,
                         "the scope is longer than %d bytes", IDEM_SCOPE_MAX);
    }
    if (rc == IDEM_EINVALID && unit->rule->shape == IDEM__LAMBDA_HTTP) {
        unit->refusal = &idem__lambda_unauthenticated;
    }
    return rc;
}

/* Two functions never share a record by accident; nor do two clients, who choose
 * their keys themselves: one could be given what is another's. */
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

/* What is selected takes the place of the body; of HTTP method, path and query go on
 * to count, so that no path is answered with the response of another one. */
static int add_selected(struct idem_lambda *lambda,
                        struct idem__lambda_unit *unit,
                        const struct idem__lambda_parts *parts,
                        struct idem_error *error)
{
    bool is_http = unit->rule->shape == IDEM__LAMBDA_HTTP;
    struct idem__buffer selected = {.len = 0};
    int rc = idem__lambda_select(lambda, IDEM__LAMBDA_FINGERPRINT, unit->text,
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
    struct idem__lambda_parts parts = {.text = unit->text};
    const char *why;
    int rc = 0;

    if (option != NULL && strcmp(option, "none") == 0) {
        return 0;
    }
    why = unit->rule->parts(unit->json, &parts);
    if (why != NULL) {
        rc = idem__error(error, IDEM_EINVALID, "%s", why);
    } else if (parts.json.failed || parts.decoded.failed) {
        rc = idem__error_plain(error, IDEM_ENOMEM);
    } else if (idem__lambda_selects_has(lambda, IDEM__LAMBDA_FINGERPRINT)) {
        rc = add_selected(lambda, unit, &parts, error);
    } else if (idem_http_fingerprint(parts.part, parts.len, parts.type,
                                     parts.body, idem_bytes(NULL, 0),
                                     unit->fingerprint) != 0) {
        rc = idem__error_plain(error, IDEM_ENOMEM);
    }
    unit->has_fingerprint = rc == 0;
    idem__buffer_free(&parts.json);
    idem__buffer_free(&parts.decoded);
    return rc;
}

/* ---- The time ---------------------------------------------------------- */

/* Over HTTP a client would choose it. */
static int find_time(struct idem_lambda *lambda, struct idem__lambda_unit *unit,
                     struct idem_error *error)
{
    struct idem__buffer text = {0};
    struct idem_slice said;
    int rc;

    if (unit->rule->shape == IDEM__LAMBDA_HTTP) {
        return 0;
    }
    if (!idem__lambda_selects_has(lambda, IDEM__LAMBDA_TIME)) {
        unit->event_ms =
            unit->rule->time_ms == NULL ? 0 : unit->rule->time_ms(unit->json);
        return 0;
    }
    rc = idem__lambda_select(lambda, IDEM__LAMBDA_TIME, unit->text, &text,
                             error);
    if (rc == 0) {
        said = idem__buffer_slice(&text);
        unit->event_ms = idem__lambda_time_ms(said);
        if (unit->event_ms == 0) {
            unit->event_ms = idem__lambda_time_utc(said);
        }
        if (unit->event_ms == 0) {
            rc = idem__error(error, IDEM_EINVALID,
                             "IDEM_LAMBDA_EVENT_TIME selects no time: "
                             "milliseconds since 1970, or as in "
                             "2026-01-02T12:45:07Z");
        }
    }
    idem__buffer_free(&text);
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
    rc = find_time(lambda, unit, ret_error);
    if (rc == 0) {
        rc = find_key(lambda, unit, ret_error);
    }
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

/* Never shorter than the function can live. */
static int64_t lease_of(const struct idem_lambda *lambda)
{
    int64_t left = idem__lambda_left_ms(lambda->now);
    int64_t lease = (left < 0 ? 0 : left) + lambda->options->lease_margin_ms;

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
        idem__lambda_input(&lambda->input, unit);
        ret_request->input = idem__buffer_slice(&lambda->input);
    }
    return options->keep_input && lambda->input.failed ? IDEM_ENOMEM : 0;
}
