/* Requests over HTTP and their responses, for middleware: the decisions of
 * <idem/exchange.h> as messages. */
#include "serve/methods.h"

#include <idem/exchange.h>

#include "http/multipart.h"
#include "text/text.h"

#include <stdlib.h>

/* ---- Headers of a message ------------------------------------------------ */

/* The pair at *@at of a list that params.c has checked; 0: the first. */
static bool next_header(const struct serve_params *p, uint32_t *at,
                        struct idem_slice *ret_name,
                        struct idem_slice *ret_value)
{
    const struct idem__tree *tree = p->m->tree;
    const struct idem__tree_node *name;

    *at = *at == 0 ? p->headers + 1 : *at;
    if (*at >= idem__tree_at(tree, p->headers)->end) {
        return false;
    }
    name = idem__tree_at(tree, *at + 1);
    *ret_name = idem__tree_text(tree, name);
    *ret_value = idem__tree_text(tree, idem__tree_at(tree, name->end));
    *at = idem__tree_at(tree, *at)->end;
    return true;
}

/* How often the header @wanted is there, and its last value; NULL: never. */
static unsigned find(const struct serve_params *p, const char *wanted,
                     struct idem_slice *ret_value)
{
    struct idem_slice value;
    struct idem_slice name;
    uint32_t at = 0;
    unsigned n = 0;

    *ret_value = idem_bytes(NULL, 0);
    while (next_header(p, &at, &name, &value)) {
        if (idem__http_is(name, wanted)) {
            *ret_value = value;
            n++;
        }
    }
    return n;
}

/* ---- The answer ---------------------------------------------------------- */

/* Programs take the bytes of a header as characters up to U+00FF. A value that is not
 * UTF-8, which a gateway may have recorded, is sent in that form. */
static void add_header(struct cli_json *json, struct idem_slice name,
                       struct idem_slice value)
{
    struct idem__buffer text = {.failed = false};
    const uint8_t *p = value.base;
    size_t i;

    if (!cli_is_utf8(value)) {
        for (i = 0; i < value.len; i++) {
            const uint8_t two[] = {(uint8_t)(0xc0 | p[i] >> 6),
                                   (uint8_t)(0x80 | (p[i] & 0x3f))};

            idem__buffer_add(&text, p[i] < 0x80 ? p + i : two,
                             p[i] < 0x80 ? 1 : 2);
        }
        json->text.failed = json->text.failed || text.failed;
        value = idem__buffer_slice(&text);
    }
    cli_json_append_pair(json, "headers", name, value);
    idem__buffer_free(&text);
}

/* Opens the answer to the request. @verdict may be NULL. */
static struct cli_json *open_answer(struct serve_call *call,
                                    const char *verdict, int status)
{
    struct cli_json *json = serve_answer(call);

    if (verdict != NULL) {
        cli_json_text(json, "verdict", verdict);
    }
    cli_json_open(json, "answer");
    cli_json_ms(json, "status", status);
    cli_json_array(json, "headers");
    return json;
}

static void refuse(struct serve_call *call, const char *verdict,
                   enum idem_http_problem_kind kind, int retry_after_s,
                   struct idem_slice error)
{
    struct cli_json *json =
        open_answer(call, verdict, idem_http_problem_of(kind)->status);
    char text[IDEM_HTTP_PROBLEM_MAX];
    char seconds[16];

    add_header(json, idem_str("Content-Type"),
               idem_str(IDEM_HTTP_PROBLEM_CONTENT));
    add_header(json, idem_str("X-Content-Type-Options"), idem_str("nosniff"));
    if (retry_after_s > 0) {
        (void)snprintf(seconds, sizeof(seconds), "%d", retry_after_s);
        add_header(json, idem_str("Retry-After"), idem_str(seconds));
    }
    cli_json_base64(json, "body",
                    idem_bytes(text,
                               idem_http_problem_body(kind, error, text)));
    serve_reply(call);
}

static void replay(struct serve_call *call, const struct idem_form *form)
{
    struct cli_json *json =
        open_answer(call, idem_verdict_name(IDEM_REPLAY), form->http_status);
    struct idem_http_replay marks = {.form = form, .rest = form->headers};
    struct idem_slice type = idem_form_content_type(form);
    struct idem__buffer body = {.failed = false};
    struct idem_slice rest = form->bytes;
    enum idem_stream stream;
    struct idem_slice value;
    struct idem_slice name;

    if (type.len > 0) {
        add_header(json, idem_str("Content-Type"), type);
    }
    while (idem_http_replay_next(&marks, &name, &value)) {
        add_header(json, name, value);
    }
    while (idem_form_next(form, &rest, &stream, &value)) {
        if (stream == IDEM_STREAM_STDOUT) {
            idem__buffer_add(&body, value.base, value.len);
        }
    }
    json->text.failed = json->text.failed || body.failed;
    cli_json_base64(json, "body", idem__buffer_slice(&body));
    idem__buffer_free(&body);
    serve_reply(call);
}

void serve_http_answer(struct serve_call *call, int code,
                       const struct idem_attempt *found)
{
    const char *verdict = code == 0 ? idem_verdict_name(found->verdict) : NULL;
    struct idem_http_answer answer;

    idem_http_answer_of(code, found, idem_str(call->begin.accept), &answer);
    switch (answer.action) {
    case IDEM_HTTP_REPLAY:
        replay(call, &answer.form);
        break;
    case IDEM_HTTP_FETCH: /* No line could hold the body. */
        refuse(call, verdict, IDEM_HTTP_NOT_KEPT, 0, answer.error);
        break;
    default:
        refuse(call, verdict, answer.problem, answer.retry_after_s,
               answer.error);
        break;
    }
}

/* ---- The request --------------------------------------------------------- */

/* Computes the fingerprint as the gateway does by default, but without the host, which
 * proxies change. */
static int fingerprint(struct serve_params *p)
{
    const struct idem_slice none = {NULL, 0};
    const char *form = "multipart/form-data";
    const char *query = memchr(p->target.base, '?', p->target.len);
    struct idem_slice type;
    struct idem_slice parts[] = {
        idem_str("idem-http1"),   none, idem_str("method"),   p->method,
        idem_str("path"),         none, idem_str("no query"), none,
        idem_str("content-type"), none,
    };

    (void)find(p, "Content-Type", &type);
    parts[5] = p->target;
    if (query != NULL) {
        parts[5].len = (size_t)(query - (const char *)p->target.base);
        parts[6] = idem_str("query");
        parts[7] = idem_bytes(query + 1, p->target.len - parts[5].len - 1);
    }
    /* Each retry of a form has another boundary. */
    parts[9] =
        idem__http_is(idem__media_type(type), form) ? idem_str(form) : type;
    p->request.fingerprint = idem_bytes(p->fingerprint, IDEM_FINGERPRINT_LEN);
    return idem_http_fingerprint(parts, sizeof(parts) / sizeof(parts[0]), type,
                                 p->body, none, p->fingerprint);
}

/* True if the request is answered at once, and why. */
static bool has_problem(struct serve_params *p,
                        enum idem_http_problem_kind *ret_kind)
{
    struct idem_slice upgrade;
    struct idem_slice value;
    unsigned n = find(p, "Idempotency-Key", &value);

    if (n == 0) {
        *ret_kind = IDEM_HTTP_KEY_MISSING;
    } else if (find(p, "Upgrade", &upgrade) > 0 &&
               !idem__http_is(upgrade, "h2c")) {
        *ret_kind = IDEM_HTTP_UPGRADE;
    } else if (n > 1 || idem_http_key(value, p->key, &p->request.key.len,
                                      /* ret_error= */ NULL) != 0) {
        *ret_kind = IDEM_HTTP_KEY_INVALID;
    } else if (p->request.scope.base == NULL) {
        *ret_kind = IDEM_HTTP_SCOPE_MISSING;
    } else if (p->body.len > SERVE_RESULT_MAX) {
        *ret_kind = IDEM_HTTP_TOO_LARGE;
    } else {
        return false;
    }
    return true;
}

/* Keeps Accept-Encoding for the answer, as a string: a header has no NUL. */
static bool keep_accept(struct serve_call *call, const struct serve_params *p)
{
    struct idem_slice accept;

    if (find(p, "Accept-Encoding", &accept) == 0) {
        return true;
    }
    call->begin.accept = strndup(accept.base, accept.len);
    return call->begin.accept != NULL;
}

void serve_http_begin(struct serve_call *call, struct serve_params *p)
{
    enum idem_http_problem_kind kind;

    call->begin.is_http = true;
    if (has_problem(p, &kind)) {
        refuse(call, /* verdict= */ NULL, kind, 0, idem_str(""));
        return;
    }
    p->request.key.base = p->key;
    if (find(p, "traceparent", &p->request.traceparent) > 1) {
        p->request.traceparent = idem_str(NULL);
    }
    if (fingerprint(p) != 0 || !keep_accept(call, p)) {
        p->m->error.code = IDEM_ENOMEM;
        return;
    }
    serve_begin(call, p);
    if (p->m->error.code != 0 &&
        idem_error_kind(p->m->error.code) != IDEM_KIND_CALLER) {
        serve_http_answer(call, p->m->error.code, NULL);
        p->m->error.code = 0;
    }
}

/* ---- The response -------------------------------------------------------- */

/* False: the response is too large to be kept, or memory ran out. */
static bool write_head(struct serve_params *p, bool named,
                       struct idem_result *result)
{
    struct idem_http_head head;
    struct idem_slice value;
    struct idem_slice name;
    uint32_t at = 0;
    int rc;

    p->meta = malloc(IDEM_META_MAX);
    if (p->meta == NULL) {
        return false;
    }
    rc =
        idem_http_head_open(&head, p->meta, IDEM_META_MAX, (int)p->http_status);
    if (rc == 0 && named) {
        rc = idem_http_head_complete(&head);
    }
    while (rc == 0 && next_header(p, &at, &name, &value)) {
        if (idem__http_is(name, "Content-Type")) {
            result->content_type = value;
        } else if (idem_http_header_kept(name, p->replay_headers)) {
            rc = idem_http_head_add(&head, name, value);
        }
    }
    result->meta = idem_bytes(head.base, head.len);
    result->bytes = p->body;
    return rc == 0 && result->content_type.len <= SERVE_CONTENT_TYPE_MAX &&
           result->bytes.len <= SERVE_RESULT_MAX;
}

void serve_http_end(struct serve_call *call, struct serve_params *p)
{
    struct idem_outcome_table outcomes;
    const struct idem_http_rules rules = {
        .outcomes = &outcomes,
        .failures_max = p->outcome.failures_max,
        .retry_after_ms = p->outcome.retry_after_ms,
    };
    struct idem_result *result = &p->outcome.result;
    char text[IDEM_HTTP_TEXT_MAX];
    enum idem_http_keep keep;

    (void)idem_outcome_table_read(&outcomes, IDEM_ENDINGS_HTTP, p->outcomes,
                                  /* ret_error= */ NULL);
    keep = idem_http_outcome(&rules, IDEM_HTTP_ANSWERED, (int)p->http_status,
                             text, &p->outcome);
    if (keep != IDEM_HTTP_KEEP_NOTHING &&
        (p->not_kept || !write_head(p, keep == IDEM_HTTP_KEEP_NAMED, result))) {
        idem_http_tombstone(result);
    }
    serve_end(call, p);
}
