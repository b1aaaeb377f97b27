/* The parameters of all methods. */
#include "serve/params.h"

#include "base/base64.h"
#include "serve/server.h"
#include "text/text.h"

#include <idem/key.h>

#include "key/canonical.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SHOWN = 48, /* Bytes of a name of the client's, in a sentence. */
    CONTENT_TYPE_MAX = 255,
    KEY_PARTS_MAX = 16
};

/* A value is read by the function of its row, into what @all points to. */
struct row {
    const char *name;
    void (*read)(struct serve_message *m, const struct row *row,
                 uint32_t number, void *all);
    size_t at; /* In *all. */
    int64_t min;
    int64_t max;
    const char *const *words; /* min is the first. */
};

#define ROW(text, ...)                                                         \
    {                                                                          \
        .name = (text), .read = __VA_ARGS__                                    \
    }
#define AT(member) offsetof(struct serve_params, member)
#define TO(type) ((type *)(void *)((char *)all + row->at))
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define MS_MAX IDEM_DURATION_MAX_MS

/* ---- Values -------------------------------------------------------------- */

/* False: it is not a whole number, or has more than 19 digits. */
static bool read_whole(struct idem_slice digits, int64_t *ret_number)
{
    char text[20];
    char *end;

    if (digits.len == 0 || digits.len >= sizeof(text)) {
        return false;
    }
    memcpy(text, digits.base, digits.len);
    text[digits.len] = '\0';
    errno = 0;
    *ret_number = strtoll(text, &end, 10);
    return *end == '\0' && errno == 0;
}

static int64_t whole(struct serve_message *m, const struct row *row,
                     const struct idem__tree_node *node)
{
    int64_t n = 0;

    if (node->kind != IDEM__TREE_NUMBER ||
        !read_whole(idem__tree_text(m->tree, node), &n) || n < row->min ||
        n > row->max) {
        serve_param_refuse(m, row->name, "a whole number from %lld to %lld",
                           (long long)row->min, (long long)row->max);
    }
    return n;
}

static void read_number(struct serve_message *m, const struct row *row,
                        uint32_t number, void *all)
{
    *TO(int64_t) = whole(m, row, idem__tree_at(m->tree, number));
}

static void read_short(struct serve_message *m, const struct row *row,
                       uint32_t number, void *all)
{
    *TO(uint32_t) = (uint32_t)whole(m, row, idem__tree_at(m->tree, number));
}

/* In ms, where null is IDEM_NEVER. */
static void read_time(struct serve_message *m, const struct row *row,
                      uint32_t number, void *all)
{
    const struct idem__tree_node *node = idem__tree_at(m->tree, number);

    *TO(int64_t) =
        node->kind == IDEM__TREE_NULL ? IDEM_NEVER : whole(m, row, node);
}

static struct idem_slice text_of(const struct serve_message *m,
                                 const struct idem__tree_node *node)
{
    const struct idem_slice none = idem_str("");

    return node->kind == IDEM__TREE_STRING && node->text_len > 0
               ? idem__tree_text(m->tree, node)
               : none;
}

static void read_text(struct serve_message *m, const struct row *row,
                      uint32_t number, void *all)
{
    const struct idem__tree_node *node = idem__tree_at(m->tree, number);

    if (node->kind != IDEM__TREE_STRING || node->text_len < row->min ||
        node->text_len > row->max) {
        serve_param_refuse(m, row->name, "a text of %lld to %lld bytes",
                           (long long)row->min, (long long)row->max);
        return;
    }
    *TO(struct idem_slice) = text_of(m, node);
}

/* A copy, NUL-terminated, of a text that has no NUL. */
static void read_name(struct serve_message *m, const struct row *row,
                      uint32_t number, void *all)
{
    const struct row of_slice = {.name = row->name,
                                 .min = row->min,
                                 .max = row->max};
    struct idem_slice text = idem_str("");
    char *to = TO(char);

    read_text(m, &of_slice, number, &text);
    if (memchr(text.base, '\0', text.len) != NULL) {
        serve_param_refuse(m, row->name, "a text without U+0000");
    }
    memcpy(to, text.base, text.len);
    to[text.len] = '\0';
}

static void read_bool(struct serve_message *m, const struct row *row,
                      uint32_t number, void *all)
{
    const struct idem__tree_node *node = idem__tree_at(m->tree, number);

    if (node->kind != IDEM__TREE_TRUE && node->kind != IDEM__TREE_FALSE) {
        serve_param_refuse(m, row->name, "true or false");
    }
    *TO(bool) = node->kind == IDEM__TREE_TRUE;
}

static void read_word(struct serve_message *m, const struct row *row,
                      uint32_t number, void *all)
{
    struct idem_slice text = text_of(m, idem__tree_at(m->tree, number));
    int i;

    for (i = 0; row->words[i] != NULL; i++) {
        if (serve_is_text(text, row->words[i])) {
            *TO(int) = (int)row->min + i;
            return;
        }
    }
    serve_param_refuse(m, row->name, "\"%s\" or \"%s\"", row->words[0],
                       row->words[1]);
}

static void read_status(struct serve_message *m, const struct row *row,
                        uint32_t number, void *all)
{
    struct idem_slice text = text_of(m, idem__tree_at(m->tree, number));
    int i;

    for (i = IDEM_STATUS_IN_PROGRESS; i <= IDEM_STATUS_RETRY; i++) {
        const char *name = idem_status_name((enum idem_status)i);

        if (name != NULL && serve_is_text(text, name)) {
            *TO(int) = i;
            return;
        }
    }
    serve_param_refuse(m, row->name, "\"completed\", or another status");
}

/* A number in a text: those of JavaScript end at 2^53. */
static void read_fence(struct serve_message *m, const struct row *row,
                       uint32_t number, void *all)
{
    struct idem_slice text = text_of(m, idem__tree_at(m->tree, number));
    int64_t fence = 0;

    if (!read_whole(text, &fence) || fence < 1) {
        serve_param_refuse(m, row->name,
                           "a fence, as a text: "
                           "\"1795249440000\"");
    }
    *TO(uint64_t) = (uint64_t)fence;
}

static void read_id(struct serve_message *m, const struct row *row,
                    uint32_t number, void *all)
{
    const struct idem__tree_node *node = idem__tree_at(m->tree, number);

    if (node->kind != IDEM__TREE_STRING && node->kind != IDEM__TREE_NUMBER) {
        serve_param_refuse(m, row->name, "that of a begin");
    }
    *TO(struct idem_slice) = idem__tree_raw(m->tree, node);
}

static void read_nonce(struct serve_message *m, const struct row *row,
                       uint32_t number, void *all)
{
    static const char hex[] = "0123456789abcdef";
    struct idem_slice text = text_of(m, idem__tree_at(m->tree, number));
    const char *digits = text.base;
    uint8_t *nonce = TO(uint8_t);
    const char *at = hex;
    size_t i;

    for (i = 0; i < text.len && text.len == 32 && at != NULL; i++) {
        at = memchr(hex, digits[i], 16);
        if (at != NULL) {
            nonce[i / 2] = (uint8_t)(nonce[i / 2] << 4 | (at - hex));
        }
    }
    if (i != 32 || at == NULL) {
        serve_param_refuse(m, row->name,
                           "16 random bytes as 32 digits 0-9a-f, new for each "
                           "claim");
    }
}

/* Whatever it is; null as well. */
static void read_json(struct serve_message *m, const struct row *row,
                      uint32_t number, void *all)
{
    (void)m;
    *TO(uint32_t) = number;
}

/* ---- The operation ------------------------------------------------------- */

/* ".[0], .[1]", so that a list of another length is another key. */
static void write_selector(char *text, size_t size, unsigned n)
{
    size_t len = 0;
    unsigned i;

    for (i = 0; i < n; i++) {
        len += (size_t)snprintf(text + len, size - len, "%s.[%u]",
                                i == 0 ? "" : ", ", i);
    }
}

/* One key of all in @list, as idem_key_of() makes it. */
static void join(struct serve_message *m, const struct idem__tree_node *list,
                 struct serve_params *p)
{
    struct idem_selector *selector = NULL;
    struct idem_error error = {0};
    struct idem_key_text key;
    char text[KEY_PARTS_MAX * 8];

    if (list->count < 1 || list->count > KEY_PARTS_MAX) {
        serve_param_refuse(m, "key", "a list has 1 to %d parts", KEY_PARTS_MAX);
        return;
    }
    write_selector(text, sizeof(text), list->count);
    error.code = idem_selector_create(text, &selector, &error);
    if (error.code == 0) {
        error.code = idem_selector_run(selector, idem__tree_raw(m->tree, list),
                                       /* flags= */ 0, &error);
    }
    if (error.code == 0) {
        error.code = idem_key_of(selector, &key, &error);
    }
    idem_selector_destroy(selector);
    if (error.code != 0) {
        serve_param_refuse(m, "key", "%s", error.text);
        return;
    }
    memcpy(p->key, key.text, key.len);
    p->request.key = idem_bytes(p->key, key.len);
}

static void read_key(struct serve_message *m, const struct row *row,
                     uint32_t number, void *all)
{
    const struct idem__tree_node *node = idem__tree_at(m->tree, number);
    struct serve_params *p = all;
    struct idem_slice text = text_of(m, node);

    if (node->kind == IDEM__TREE_ARRAY) {
        join(m, node, p);
    } else if (text.len < 1 || text.len > IDEM_KEY_MAX) {
        serve_param_refuse(m, row->name, "a text of 1 to %d bytes, or a list",
                           IDEM_KEY_MAX);
    } else {
        p->request.key = text;
    }
}

/* Of all JSON that means the same there is one. */
static void read_fingerprint(struct serve_message *m, const struct row *row,
                             uint32_t number, void *all)
{
    struct serve_params *p = all;
    const struct idem_slice none = {NULL, 0};
    struct idem__buffer text = {0};
    struct idem_error error = {0};
    struct idem_slice parts[2];

    error.code =
        idem__canonical(m->tree, number, IDEM_FLAVOUR_NONE, &text, &error);
    if (error.code == 0) {
        parts[0] = idem_str("json"); /* As a body of HTTP that is JSON. */
        parts[1] = idem__buffer_slice(&text);
        error.code = idem_fingerprint(parts, 2, none, p->fingerprint);
    }
    idem__buffer_free(&text);
    if (error.code != 0) {
        serve_param_refuse(m, row->name, "%s",
                           error.text[0] != '\0' ? error.text
                                                 : idem_error_text(error.code));
    }
    p->request.fingerprint = idem_bytes(p->fingerprint, IDEM_FINGERPRINT_LEN);
}

/* ---- The result ---------------------------------------------------------- */

struct result {
    struct idem_slice text;
    struct idem_slice base64;
    uint32_t json; /* null is JSON, too. */
    struct idem_result of;
};

static const struct row result_rows[] = {
    ROW("base64", read_text, offsetof(struct result, base64), 0,
        SERVE_LINE_MAX),
    ROW("content_type", read_text, offsetof(struct result, of.content_type), 0,
        CONTENT_TYPE_MAX),
    ROW("json", read_json, offsetof(struct result, json)),
    ROW("meta", read_text, offsetof(struct result, of.meta), 0, IDEM_META_MAX),
    ROW("not_kept", read_bool, offsetof(struct result, of.not_kept)),
    ROW("text", read_text, offsetof(struct result, text), 0, SERVE_LINE_MAX),
    {.name = NULL},
};

static struct idem_slice decode(struct serve_message *m, struct idem_slice text,
                                uint8_t **ret_bytes)
{
    size_t len = 0;

    *ret_bytes = malloc(idem__base64_max(text.len) + 1);
    if (*ret_bytes == NULL) {
        serve_param_refuse(m, "base64", "out of memory");
    } else if (idem__base64_read(IDEM__BASE64, text, *ret_bytes, &len) != 0) {
        serve_param_refuse(m, "base64", "a text of it, padded with =");
    }
    return idem_bytes(*ret_bytes, len);
}

static void read_bytes(struct serve_message *m, struct result *r,
                       struct idem_slice *ret_bytes, const char **ret_type,
                       uint8_t **ret_decoded)
{
    if (r->text.base != NULL) {
        *ret_bytes = r->text;
        *ret_type = "text/plain; charset=utf-8";
    } else if (r->json != 0) {
        *ret_bytes = idem__tree_raw(m->tree, idem__tree_at(m->tree, r->json));
        *ret_type = "application/json";
    } else if (r->base64.base != NULL) {
        *ret_bytes = decode(m, r->base64, ret_decoded);
        *ret_type = "application/octet-stream";
    }
}

static void read_members(struct serve_message *m, uint32_t object,
                         const struct row *table, const char *const *names,
                         void *to);

/* One that no line could hold again becomes a tombstone: the work was done. */
static void read_result(struct serve_message *m, const struct row *row,
                        uint32_t object, void *all)
{
    struct serve_params *p = all;
    struct serve_message inner = *m; /* What is wrong is in "result". */
    struct result r = {.json = 0};
    const char *type = NULL;

    if (idem__tree_at(m->tree, object)->kind != IDEM__TREE_OBJECT) {
        serve_param_refuse(m, row->name, "an object with text, json or base64");
        return;
    }
    read_members(&inner, object, result_rows, /* names= */ NULL, &r);
    if ((r.text.base != NULL) + (r.json != 0) + (r.base64.base != NULL) > 1) {
        serve_param_refuse(&inner, "text", "choose one: text, json or base64");
    }
    read_bytes(&inner, &r, &r.of.bytes, &type, &p->bytes);
    if (r.of.content_type.len == 0 && type != NULL) {
        r.of.content_type = idem_str(type);
    }
    if (r.of.not_kept && r.of.bytes.len > 0) {
        serve_param_refuse(&inner, "not_kept", "it goes without bytes");
    }
    if (r.of.bytes.len > SERVE_RESULT_MAX) {
        r.of.bytes.len = 0;
        r.of.not_kept = true;
    }
    p->outcome.result = r.of;
    if (inner.code != 0) {
        serve_param_refuse(m, row->name, "%s", inner.text);
    }
}

/* ---- All of them --------------------------------------------------------- */

static const struct row rows[] = {
    ROW("again", read_bool, AT(again)),
    ROW("at_ms", read_number, AT(limit.at_ms), 1, MS_MAX),
    ROW("attempt", read_number, AT(attempt), 1, INT64_MAX),
    ROW("attempts_max", read_short, AT(request.attempts_max), 0, UINT32_MAX),
    ROW("challenge", read_name, AT(challenge), 0, 32),
    ROW("cost", read_number, AT(limit.cost), 1, IDEM_LIMIT_MAX),
    ROW("expect_ms", read_number, AT(request.expect_ms), 1, MS_MAX),
    ROW("failures_max", read_short, AT(outcome.failures_max), 1, UINT32_MAX),
    ROW("fence", read_fence, AT(fence)),
    ROW("fingerprint", read_fingerprint, 0),
    ROW("force", read_bool, AT(force)),
    ROW("id", read_id, AT(id)),
    ROW("key", read_key, 0),
    ROW("late_ms", read_number, AT(limit.late_ms), 0, MS_MAX),
    ROW("lease_ms", read_time, AT(request.lease_ms), IDEM_LEASE_MIN_MS, MS_MAX),
    ROW("max", read_number, AT(limit.max), 1, IDEM_LIMIT_MAX),
    ROW("max_time_ms", read_number, AT(max_time_ms), 1, MS_MAX),
    ROW("name", read_text, AT(limit.name), 0, IDEM_LIMIT_NAME_MAX),
    ROW("nonce", read_nonce, AT(nonce)),
    ROW("on_death", read_word, AT(dies_at_once), 0, 0, WORDS("lease", "now")),
    ROW("on_expired_lease", read_word, AT(request.on_expired_lease), IDEM_RERUN,
        0, WORDS("rerun", "hold")),
    ROW("overdue", read_bool, AT(overdue)),
    ROW("owner", read_name, AT(owner), 0, IDEM_OWNER_MAX),
    ROW("per_ms", read_number, AT(limit.per_ms), IDEM_LIMIT_SECOND,
        IDEM_LIMIT_PER_MAX),
    ROW("pid", read_number, AT(pid), 1, INT32_MAX),
    ROW("place", read_name, AT(place), 0, IDEM_PLACE_MAX - 1),
    ROW("protocol", read_number, AT(protocol), SERVE_PROTOCOL, SERVE_PROTOCOL),
    ROW("reason", read_name, AT(reason), 1, IDEM_TEXT_MAX),
    ROW("request", read_text, AT(limit.request), 0, IDEM_LIMIT_NAME_MAX),
    ROW("result", read_result, AT(outcome.result)),
    ROW("retention_ms", read_time, AT(request.retention_ms), 1, MS_MAX),
    ROW("retry_after_ms", read_number, AT(outcome.retry_after_ms), 0, MS_MAX),
    ROW("scope", read_text, AT(request.scope), 0, IDEM_SCOPE_MAX),
    ROW("start_ms", read_number, AT(limit.start_ms), 0, MS_MAX),
    ROW("status", read_status, AT(status)),
    ROW("subject", read_text, AT(limit.subject), 0, IDEM_LIMIT_NAME_MAX),
    ROW("text", read_text, AT(outcome.text), 0, IDEM_RESULT_MAX),
    ROW("token", read_name, AT(token), 0, IDEM_TOKEN_MAX - 1),
    ROW("wait_ms", read_number, AT(wait_ms), 0, MS_MAX),
    ROW("wait_then_run", read_bool, AT(wait_then_run)),
    ROW("who", read_name, AT(who), 0, IDEM_OWNER_MAX),
    {.name = NULL},
};

/* Whether a method that has @names takes @name. */
static bool is_among(struct idem_slice name, const char *const *names)
{
    while (*names != NULL && !serve_is_text(name, *names + (**names == '*'))) {
        names++;
    }
    return *names != NULL;
}

static const struct row *find_row(struct idem_slice name,
                                  const struct row *table,
                                  const char *const *names)
{
    if (names != NULL && !is_among(name, names)) {
        return NULL;
    }
    while (table->name != NULL && !serve_is_text(name, table->name)) {
        table++;
    }
    return table->name == NULL ? NULL : table;
}

/* A member that is null is as one that is not there, but where null means more. */
static void read_members(struct serve_message *m, uint32_t object,
                         const struct row *table, const char *const *names,
                         void *to)
{
    uint32_t end = idem__tree_at(m->tree, object)->end;
    char shown[SHOWN];
    uint32_t i;

    for (i = object + 1; i < end; i = idem__tree_at(m->tree, i)->end) {
        const struct idem__tree_node *node = idem__tree_at(m->tree, i);
        struct idem_slice name = idem__tree_name(m->tree, node);
        const struct row *row = find_row(name, table, names);

        if (row == NULL) {
            (void)cli_escape(name, shown, sizeof(shown));
            serve_param_refuse(m, shown, "there is no such parameter");
        } else if (node->kind != IDEM__TREE_NULL || row->read == read_time ||
                   row->read == read_json) {
            row->read(m, row, i, to);
        }
    }
}

static void check_missing(struct serve_message *m, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (**names == '*') {
            uint32_t i = m->params == 0
                             ? 0
                             : serve_member(m->tree, m->params, *names + 1);

            if (i == 0 || idem__tree_at(m->tree, i)->kind == IDEM__TREE_NULL) {
                serve_param_refuse(m, *names + 1, "missing");
            }
        }
    }
}

void serve_params_read(struct serve_message *m, const char *const *names,
                       struct serve_params *ret_params)
{
    *ret_params = (struct serve_params){.request = IDEM_REQUEST_INIT,
                                        .limit = IDEM_LIMIT_INIT,
                                        .max_time_ms = SERVE_MAX_TIME_MS};
    ret_params->request.lease_ms = 0;
    ret_params->request.on_expired_lease = IDEM_HOLD;
    if (m->params != 0) {
        read_members(m, m->params, rows, names, ret_params);
    }
    check_missing(m, names);
}

void serve_params_finish(struct serve_params *params)
{
    free(params->bytes);
}
