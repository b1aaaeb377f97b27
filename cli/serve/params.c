/* The parameters of all methods. */
#include "serve/params.h"

#include "base/base64.h"
#include "core/slice.h"
#include "serve/server.h"
#include "text/text.h"

#include <idem/key.h>

#include "key/canonical.h"

#include <assert.h>
#include <idem/http.h>
#include <idem/outcome.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SHOWN = 48, /* Bytes of a name of the client's, in a sentence. */
    KEY_PARTS_MAX = 16
};

struct value;

/* One parameter: how it is read, and where to. */
struct row {
    const char *name;
    void (*read)(const struct value *v);
    size_t at; /* Its offset in struct serve_params. */
    int64_t min;
    int64_t max;
    const char *const *words; /* min is the first. */
};

/* A parameter of a message. */
struct value {
    struct serve_message *m;
    const struct row *row;
    const struct idem__tree_node *node;
    uint32_t number;        /* Of the node. */
    struct idem_slice text; /* Empty, but not NULL, if it is not a text. */
    void *to;
};

#define ROW(text, ...)                                                         \
    {                                                                          \
        .name = (text), .read = __VA_ARGS__                                    \
    }
#define AT(member) offsetof(struct serve_params, member)
#define TO(type) ((type *)v->to)
#define REFUSE(...) serve_param_refuse(v->m, v->row->name, __VA_ARGS__)
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define MS_MAX IDEM_DURATION_MAX_MS

/* ---- Values -------------------------------------------------------------- */

static int64_t whole(const struct value *v)
{
    uint64_t n = 0;

    if (v->node->kind != IDEM__TREE_NUMBER ||
        !idem__digits(idem__tree_text(v->m->tree, v->node),
                      (uint64_t)v->row->max, &n) ||
        n < (uint64_t)v->row->min) {
        REFUSE("a whole number from %lld to %lld", (long long)v->row->min,
               (long long)v->row->max);
    }
    return (int64_t)n;
}

static void read_number(const struct value *v)
{
    *TO(int64_t) = whole(v);
}

static void read_short(const struct value *v)
{
    *TO(uint32_t) = (uint32_t)whole(v);
}

/* In ms, where null is IDEM_NEVER. */
static void read_time(const struct value *v)
{
    *TO(int64_t) = v->node->kind == IDEM__TREE_NULL ? IDEM_NEVER : whole(v);
}

static bool is_text(const struct value *v)
{
    if (v->node->kind == IDEM__TREE_STRING &&
        v->node->text_len >= v->row->min && v->node->text_len <= v->row->max) {
        return true;
    }
    REFUSE("a text of %lld to %lld bytes", (long long)v->row->min,
           (long long)v->row->max);
    return false;
}

static void read_text(const struct value *v)
{
    if (is_text(v)) {
        *TO(struct idem_slice) = v->text;
    }
}

/* A text that is shown, or passed on with a NUL as its end; NULL: it is empty. */
static void read_name(const struct value *v)
{
    if (is_text(v) && memchr(v->text.base, '\0', v->text.len) != NULL) {
        REFUSE("a text without U+0000");
    } else if (v->text.len > 0) {
        *TO(const char *) = v->text.base;
    }
}

static void read_bool(const struct value *v)
{
    if (v->node->kind != IDEM__TREE_TRUE && v->node->kind != IDEM__TREE_FALSE) {
        REFUSE("true or false");
    }
    *TO(bool) = v->node->kind == IDEM__TREE_TRUE;
}

static void read_word(const struct value *v)
{
    int i;

    for (i = 0; v->row->words[i] != NULL; i++) {
        if (serve_is_text(v->text, v->row->words[i])) {
            *TO(int) = (int)v->row->min + i;
            return;
        }
    }
    REFUSE("\"%s\" or \"%s\"", v->row->words[0], v->row->words[1]);
}

static void read_status(const struct value *v)
{
    int i;

    for (i = IDEM_STATUS_IN_PROGRESS; i <= IDEM_STATUS_RETRY; i++) {
        const char *name = idem_status_name((enum idem_status)i);

        if (name != NULL && serve_is_text(v->text, name)) {
            *TO(int) = i;
            return;
        }
    }
    REFUSE("\"completed\", or another status");
}

/* A number in a text: numbers in JavaScript are exact only up to 2^53. */
static void read_fence(const struct value *v)
{
    if (!idem__digits(v->text, INT64_MAX, TO(uint64_t)) || *TO(uint64_t) == 0) {
        REFUSE("a fence, as a text: \"1795249440000\"");
    }
}

static void read_id(const struct value *v)
{
    if (v->node->kind != IDEM__TREE_STRING &&
        v->node->kind != IDEM__TREE_NUMBER) {
        REFUSE("the id of a begin");
    }
    *TO(struct idem_slice) = idem__tree_raw(v->m->tree, v->node);
}

static void read_nonce(const struct value *v)
{
    size_t len = 0;

    if (!cli_unhex(v->text, TO(uint8_t), 16, &len) || len != 16) {
        REFUSE("16 random bytes as 32 digits 0-9a-f, new for each claim");
    }
}

/* Any value, and null as well. */
static void read_json(const struct value *v)
{
    *TO(uint32_t) = v->number;
}

/* ---- The operation ------------------------------------------------------- */

/* Makes one key of all values in @list, as idem_key_of() does for ".[0], .[1]", so that a
 * list of another length is another key. */
static void join(struct serve_params *p, const struct idem__tree_node *list)
{
    struct idem_selector *selector = NULL;
    struct idem_error error = {0};
    struct idem_key_text key;
    char text[KEY_PARTS_MAX * 8];
    size_t len = 0;
    unsigned i;

    if (list->count < 1 || list->count > KEY_PARTS_MAX) {
        serve_param_refuse(p->m, "key", "a list has 1 to %d parts",
                           KEY_PARTS_MAX);
        return;
    }
    for (i = 0; i < list->count; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s.[%u]",
                                i == 0 ? "" : ", ", i);
    }
    if (idem_selector_create(text, &selector, &error) != 0 ||
        idem_selector_run(selector, idem__tree_raw(p->m->tree, list),
                          /* flags= */ 0, &error) != 0 ||
        idem_key_of(selector, &key, &error) != 0) {
        serve_param_refuse(p->m, "key", "%s", error.text);
    } else {
        memcpy(p->key, key.text, key.len);
        p->request.key = idem_bytes(p->key, key.len);
    }
    idem_selector_destroy(selector);
}

static void read_key(const struct value *v)
{
    struct serve_params *p = v->to;

    if (v->node->kind == IDEM__TREE_ARRAY) {
        join(p, v->node);
    } else if (v->text.len < 1 || v->text.len > IDEM_KEY_MAX) {
        REFUSE("a text of 1 to %d bytes, or a list", IDEM_KEY_MAX);
    } else {
        p->request.key = v->text;
    }
}

/* JSON values that mean the same have one fingerprint. */
static void read_fingerprint(const struct value *v)
{
    struct serve_params *p = v->to;
    const struct idem_slice none = {NULL, 0};
    struct idem__buffer text = {0};
    struct idem_error error = {0};
    struct idem_slice parts[2];

    error.code = idem__canonical(v->m->tree, v->number, IDEM_FLAVOUR_NONE,
                                 &text, &error);
    if (error.code == 0) {
        parts[0] = idem_str("json"); /* As for the body of a request. */
        parts[1] = idem__buffer_slice(&text);
        error.code = idem_fingerprint(parts, 2, none, p->fingerprint);
    }
    idem__buffer_free(&text);
    if (error.code != 0) {
        REFUSE("%s", error.text[0] != '\0' ? error.text
                                           : idem_error_text(error.code));
    }
    p->request.fingerprint = idem_bytes(p->fingerprint, IDEM_FINGERPRINT_LEN);
}

/* ---- The result ---------------------------------------------------------- */

static void give(const struct value *v, struct idem_slice bytes,
                 const char *type)
{
    struct serve_params *p = v->to;
    struct idem_result *result = &p->outcome.result;

    if (result->bytes.base != NULL) {
        serve_param_refuse(v->m, "text",
                           "give only one of text, json and base64");
    }
    result->bytes = bytes;
    p->usual_type = idem_str(type);
}

static void read_result_text(const struct value *v)
{
    if (is_text(v)) {
        give(v, v->text, "text/plain; charset=utf-8");
    }
}

/* Any value, null as well. */
static void read_result_json(const struct value *v)
{
    give(v, idem__tree_raw(v->m->tree, v->node), "application/json");
}

static struct idem_slice decode(const struct value *v)
{
    struct serve_params *p = v->to;
    size_t len = 0;

    if (!is_text(v)) {
        return v->text;
    }
    p->bytes = malloc(idem__base64_max(v->text.len) + 1);
    if (p->bytes == NULL) {
        REFUSE("out of memory");
    } else if (idem__base64_read(IDEM__BASE64, v->text, p->bytes, &len) != 0) {
        REFUSE("a text in base64, padded with =");
    }
    return idem_bytes(p->bytes, len);
}

static void read_result_base64(const struct value *v)
{
    give(v, decode(v), "application/octet-stream");
}

static const struct row result_rows[] = {
    ROW("base64", read_result_base64, 0, 0, SERVE_LINE_MAX),
    ROW("content_type", read_text, AT(outcome.result.content_type), 0,
        SERVE_CONTENT_TYPE_MAX),
    ROW("json", read_result_json, 0),
    ROW("meta", read_text, AT(outcome.result.meta), 0, IDEM_META_MAX),
    ROW("not_kept", read_bool, AT(outcome.result.not_kept)),
    ROW("text", read_result_text, 0, 0, SERVE_LINE_MAX),
};

static uint64_t read_members(struct serve_message *m, uint32_t object,
                             const struct row *table, size_t len,
                             uint64_t taken, struct serve_params *p);

/* The work was done, so a result too long for a line becomes a tombstone. */
static void read_result(const struct value *v)
{
    struct serve_params *p = v->to;
    struct serve_message inner = *v->m; /* The mistake is in "result". */
    struct idem_result *result = &p->outcome.result;

    if (v->node->kind != IDEM__TREE_OBJECT) {
        REFUSE("an object with text, json or base64");
        return;
    }
    (void)read_members(&inner, v->number, result_rows,
                       sizeof(result_rows) / sizeof(result_rows[0]),
                       /* taken= */ UINT64_MAX, p);
    if (result->content_type.len == 0) {
        result->content_type = p->usual_type;
    }
    if (result->not_kept && result->bytes.len > 0) {
        serve_param_refuse(&inner, "not_kept",
                           "must not be combined with text, json or base64");
    }
    if (result->bytes.len > SERVE_RESULT_MAX) {
        result->bytes.len = 0;
        result->not_kept = true;
    }
    if (inner.code != 0) {
        REFUSE("%s", inner.text);
    }
}

/* ---- Requests and responses over HTTP ------------------------------------ */

static bool is_pair(const struct idem__tree *tree, uint32_t i)
{
    const struct idem__tree_node *pair = idem__tree_at(tree, i);
    const struct idem__tree_node *name = idem__tree_at(tree, i + 1);
    const struct idem__tree_node *value;

    if (pair->kind != IDEM__TREE_ARRAY || pair->count != 2 ||
        name->kind != IDEM__TREE_STRING) {
        return false;
    }
    value = idem__tree_at(tree, name->end);
    return value->kind == IDEM__TREE_STRING &&
           idem_http_header_valid(idem__tree_text(tree, name),
                                  idem__tree_text(tree, value));
}

static void read_headers(const struct value *v)
{
    const struct idem__tree *tree = v->m->tree;
    bool is_list = v->node->kind == IDEM__TREE_ARRAY;
    uint32_t i = v->number + 1;

    while (is_list && i < v->node->end) {
        is_list = is_pair(tree, i);
        i = idem__tree_at(tree, i)->end;
    }
    if (!is_list) {
        REFUSE("a list of headers, each a list of its name and its value");
    }
    *TO(uint32_t) = v->number;
}

static void read_body(const struct value *v)
{
    struct serve_params *p = v->to;

    p->body = decode(v);
}

/* Checks the names with the request: once they are used the work is done, and an error
 * would come too late. */
static void read_replay_headers(const struct value *v)
{
    struct idem_error error;

    read_name(v);
    if (v->m->code == 0 &&
        idem_http_headers_check(*TO(const char *), &error) != 0) {
        REFUSE("%s", error.text);
    }
}

static void read_outcomes(const struct value *v)
{
    struct idem_outcome_table table;
    struct idem_error error;

    read_name(v);
    if (v->m->code == 0 &&
        idem_outcome_table_read(&table, IDEM_ENDINGS_HTTP, *TO(const char *),
                                &error) != 0) {
        REFUSE("%s", error.text);
    }
}

/* ---- All of them --------------------------------------------------------- */

/* In the order of their names for bsearch(), as result_rows. */
static const struct row rows[] = {
    ROW("again", read_bool, AT(claim.again)),
    ROW("at_ms", read_number, AT(limit.at_ms), 1, MS_MAX),
    ROW("attempt", read_number, AT(attempt), 1, INT64_MAX),
    ROW("attempts_max", read_short, AT(request.attempts_max), 0, UINT32_MAX),
    ROW("body", read_body, 0, 0, SERVE_LINE_MAX),
    ROW("challenge", read_name, AT(challenge), 0, 32),
    ROW("cost", read_number, AT(limit.cost), 1, IDEM_LIMIT_MAX),
    ROW("event", read_json, AT(event)),
    ROW("expect_ms", read_number, AT(request.expect_ms), 1, MS_MAX),
    ROW("failures_max", read_short, AT(outcome.failures_max), 1, UINT32_MAX),
    ROW("fence", read_fence, AT(fence)),
    ROW("fingerprint", read_fingerprint, 0),
    ROW("force", read_bool, AT(force)),
    ROW("function", read_name, AT(function), 1, 128),
    ROW("headers", read_headers, AT(headers)),
    ROW("http_status", read_number, AT(http_status), 200, 599),
    ROW("id", read_id, AT(id)),
    ROW("key", read_key, 0),
    ROW("key_from", read_name, AT(key_from), 0, SERVE_LIST_MAX - 1),
    ROW("late_ms", read_number, AT(limit.late_ms), 0, MS_MAX),
    ROW("lease_ms", read_time, AT(request.lease_ms), IDEM_LEASE_MIN_MS, MS_MAX),
    ROW("max", read_number, AT(limit.max), 1, IDEM_LIMIT_MAX),
    ROW("max_time_ms", read_number, AT(claim.max_time_ms), 1, MS_MAX),
    ROW("method", read_text, AT(method), 1, 64),
    ROW("ms", read_number, AT(advance_ms), 1, MS_MAX),
    ROW("name", read_text, AT(limit.name), 0, IDEM_LIMIT_NAME_MAX),
    ROW("nonce", read_nonce, AT(claim.nonce)),
    ROW("not_kept", read_bool, AT(not_kept)),
    ROW("on_death", read_word, AT(claim.on_death), 0, 0, WORDS("lease", "now")),
    ROW("on_expired_lease", read_word, AT(request.on_expired_lease), IDEM_RERUN,
        0, WORDS("rerun", "hold")),
    ROW("outcome", read_outcomes, AT(outcomes), 0, SERVE_LIST_MAX - 1),
    ROW("overdue", read_bool, AT(overdue)),
    ROW("owner", read_name, AT(owner), 0, IDEM_OWNER_MAX),
    ROW("per_ms", read_number, AT(limit.per_ms), IDEM_LIMIT_SECOND,
        IDEM_LIMIT_PER_MAX),
    ROW("pid", read_number, AT(pid), 1, INT32_MAX),
    ROW("place", read_name, AT(place), 0, IDEM_PLACE_MAX - 1),
    ROW("protocol", read_number, AT(protocol), SERVE_PROTOCOL, SERVE_PROTOCOL),
    ROW("reason", read_name, AT(reason), 1, IDEM_TEXT_MAX),
    ROW("replay_headers", read_replay_headers, AT(replay_headers), 0,
        SERVE_LIST_MAX - 1),
    ROW("request", read_text, AT(limit.request), 0, IDEM_LIMIT_NAME_MAX),
    ROW("request_id", read_name, AT(request_id), 0, 128),
    ROW("result", read_result, 0),
    ROW("retention_ms", read_time, AT(request.retention_ms), 1, MS_MAX),
    ROW("retry_after_ms", read_number, AT(outcome.retry_after_ms), 0, MS_MAX),
    ROW("scope", read_text, AT(request.scope), 0, IDEM_SCOPE_MAX),
    ROW("source", read_name, AT(source), 0, 32),
    ROW("start_ms", read_number, AT(limit.start_ms), 0, MS_MAX),
    ROW("states", read_text, AT(states), 0, SERVE_LINE_MAX),
    ROW("status", read_status, AT(status)),
    ROW("subject", read_text, AT(limit.subject), 0, IDEM_LIMIT_NAME_MAX),
    ROW("target", read_text, AT(target), 1, SERVE_LINE_MAX),
    ROW("text", read_text, AT(outcome.text), 0, IDEM_RESULT_MAX),
    ROW("token", read_name, AT(token), 0, IDEM_TOKEN_MAX - 1),
    ROW("traceparent", read_text, AT(request.traceparent), 0, SERVE_LINE_MAX),
    ROW("wait_ms", read_number, AT(wait_ms), 0, MS_MAX),
    ROW("wait_then_run", read_bool, AT(claim.wait_then_run)),
    ROW("who", read_name, AT(who), 0, IDEM_OWNER_MAX),
};

enum {
    ROWS = sizeof(rows) / sizeof(rows[0])
};

_Static_assert(ROWS <= 64, "a set of parameters is 64 bits");

static int compare(const void *wanted, const void *row)
{
    const struct idem_slice *name = wanted;
    const char *text = ((const struct row *)row)->name;
    size_t len = strlen(text);
    int order = memcmp(name->base, text, name->len < len ? name->len : len);

    return order != 0 ? order : (name->len > len) - (name->len < len);
}

/* A member that is null counts as missing, unless null is a value of its own. */
static bool is_there(const struct row *row, const struct idem__tree_node *node)
{
    return node->kind != IDEM__TREE_NULL || row->read == read_time ||
           row->read == read_json || row->read == read_result_json;
}

/* Reads the members of @object that are rows of @table and in the set @taken. Returns
 * the set of those that are there. */
static uint64_t read_members(struct serve_message *m, uint32_t object,
                             const struct row *table, size_t len,
                             uint64_t taken, struct serve_params *p)
{
    uint32_t end = idem__tree_at(m->tree, object)->end;
    uint64_t there = 0;
    char shown[SHOWN];
    uint32_t i;

    for (i = object + 1; i < end; i = idem__tree_at(m->tree, i)->end) {
        const struct idem__tree_node *node = idem__tree_at(m->tree, i);
        struct idem_slice name = idem__tree_name(m->tree, node);
        const struct row *row =
            bsearch(&name, table, len, sizeof(*table), compare);
        struct value value = {m, row, node, i, idem_str(""), NULL};

        if (row == NULL || (taken >> (row - table) & 1) == 0) {
            (void)cli_escape(name, shown, sizeof(shown));
            serve_param_refuse(m, shown, "unknown parameter");
        } else if (is_there(row, node)) {
            there |= UINT64_C(1) << (row - table);
            value.to = (char *)p + row->at;
            if (node->kind == IDEM__TREE_STRING && node->text_len > 0) {
                value.text = idem__tree_text(m->tree, node);
            }
            row->read(&value);
        }
    }
    return there;
}

void serve_names_read(const char *names, struct serve_names *ret_names)
{
    while (*names != '\0') {
        bool required = *names == '*';
        struct idem_slice name;
        const struct row *row;
        uint64_t bit;

        names += required;
        name = idem_bytes(names, strcspn(names, " "));
        row = bsearch(&name, rows, ROWS, sizeof(rows[0]), compare);
        assert(row != NULL);
        bit = UINT64_C(1) << (row - rows);
        ret_names->taken |= bit;
        ret_names->required |= required ? bit : 0;
        names += name.len;
        names += *names == ' ';
    }
}

static void check_missing(struct serve_message *m, uint64_t missing)
{
    size_t i;

    for (i = 0; missing != 0; i++, missing >>= 1) {
        if ((missing & 1) != 0) {
            serve_param_refuse(m, rows[i].name, "missing");
        }
    }
}

void serve_params_read(struct serve_message *m, const struct serve_names *names,
                       struct serve_params *ret_params)
{
    uint64_t there = 0;

    *ret_params =
        (struct serve_params){.m = m,
                              .request = IDEM_REQUEST_INIT,
                              .limit = IDEM_LIMIT_INIT,
                              .claim = {.max_time_ms = SERVE_MAX_TIME_MS}};
    ret_params->request.lease_ms = 0;
    ret_params->request.on_expired_lease = IDEM_HOLD;
    if (m->params != 0) {
        there =
            read_members(m, m->params, rows, ROWS, names->taken, ret_params);
    }
    check_missing(m, names->required & ~there);
}

void serve_params_finish(struct serve_params *params)
{
    free(params->bytes);
    free(params->meta);
}
