/* Results on record as what Lambda is told. */
#include "aws/lambda/form.h"

#include "aws/lambda/http.h"
#include "aws/lambda/text.h"
#include "base/bytes.h"
#include "base/text.h"

#include <stdio.h>
#include <strings.h>

/* The bytes of standard output, in one piece. Nothing of standard error is for a
 * caller. @joined is for those in several; the caller frees it. */
static struct idem_slice output_of(const struct idem_form *form,
                                   struct idem__buffer *joined)
{
    struct idem_slice rest = form->bytes;
    struct idem_slice piece;
    enum idem_stream stream;

    if (!form->framed) {
        return rest;
    }
    while (idem_form_next(form, &rest, &stream, &piece)) {
        if (stream == IDEM_STREAM_STDOUT) {
            idem__buffer_add(joined, piece.base, piece.len);
        }
    }
    return idem__buffer_slice(joined);
}

/* ---- For an event ------------------------------------------------------ */

static void add_base64(struct idem__buffer *to, struct idem_slice bytes)
{
    idem__buffer_str(to, "\"");
    idem__buffer_base64(to, bytes);
    idem__buffer_str(to, "\"");
}

void idem__lambda_form_value(struct idem__buffer *to,
                             const struct idem_form *form)
{
    struct idem__buffer joined = {0};
    struct idem_slice output = output_of(form, &joined);
    bool may_be_json = form->kind == IDEM_FORM_JSON || idem_form_is_plain(form);

    idem__buffer_reset(to, to->cap);
    if (joined.failed) {
        to->failed = true;
    } else if (output.len == 0) {
        idem__buffer_str(to, "null");
    } else if (may_be_json && idem__lambda_is_json(output)) {
        idem__buffer_add(to, output.base, output.len);
    } else if (idem__utf8_is(output)) {
        idem__lambda_string(to, output);
    } else {
        idem__buffer_str(to, "{\"body\":");
        add_base64(to, output);
        idem__buffer_str(to, ",\"isBase64Encoded\":true}");
    }
    idem__buffer_free(&joined);
}

/* ---- For HTTP ---------------------------------------------------------- */

static bool is_name(struct idem_slice a, struct idem_slice b)
{
    return a.len == b.len && strncasecmp(a.base, b.base, a.len) == 0;
}

/* A balancer that sends many values takes no others; elsewhere they are one, with
 * commas (RFC 9110 section 5.3). */
struct headers {
    struct idem__buffer *to;
    bool many;
    bool any;
};

static void open_header(struct headers *h, struct idem_slice name)
{
    idem__buffer_str(h->to, h->any ? "," : "");
    idem__lambda_string(h->to, name);
    idem__buffer_str(h->to, h->many ? ":[" : ":");
    h->any = true;
}

static void add_header(struct headers *h, const char *name,
                       struct idem_slice value)
{
    open_header(h, idem_str(name));
    idem__lambda_string(h->to, value);
    idem__buffer_str(h->to, h->many ? "]" : "");
}

/* All values of @name in @rest, the first of which is @value. */
static void add_values(struct headers *h, struct idem_slice name,
                       struct idem_slice value, struct idem_slice rest)
{
    struct idem__buffer list = {0};
    struct idem_slice other;
    int code;

    open_header(h, name);
    if (h->many) {
        idem__lambda_string(h->to, value);
    } else {
        idem__buffer_add(&list, value.base, value.len);
    }
    while (idem_http_head_next(&rest, &other, &value, &code)) {
        if (!is_name(other, name)) {
            continue;
        }
        if (h->many) {
            idem__buffer_str(h->to, ",");
            idem__lambda_string(h->to, value);
        } else {
            idem__buffer_str(&list, ", ");
            idem__buffer_add(&list, value.base, value.len);
        }
    }
    if (!h->many) {
        idem__lambda_string(h->to, idem__buffer_slice(&list));
    }
    idem__buffer_str(h->to, h->many ? "]" : "");
    h->to->failed |= list.failed;
    idem__buffer_free(&list);
}

/* True if one of @head before @end has the name @name. */
static bool comes_before(struct idem_slice head, const void *end,
                         struct idem_slice name)
{
    struct idem_slice other;
    struct idem_slice value;
    int code;

    while (idem_http_head_next(&head, &other, &value, &code) &&
           (const char *)other.base < (const char *)end) {
        if (is_name(other, name)) {
            return true;
        }
    }
    return false;
}

static void add_recorded(struct headers *h, struct idem_slice head,
                         bool *ret_cached)
{
    struct idem_slice rest = head;
    struct idem_slice name;
    struct idem_slice value;
    int code;

    *ret_cached = false;
    while (idem_http_head_next(&rest, &name, &value, &code)) {
        *ret_cached |= is_name(name, idem_str("Cache-Control"));
        if (!comes_before(head, name.base, name)) {
            add_values(h, name, value, rest);
        }
    }
}

static void add_headers(struct headers *h, const struct idem_form *form,
                        bool replay)
{
    struct idem_slice type = idem_form_content_type(form);
    bool cached;

    if (type.len > 0) {
        add_header(h, "Content-Type", type);
    }
    if (type.len > 0 && idem_form_is_plain(form)) {
        add_header(h, "X-Content-Type-Options", idem_str("nosniff"));
    }
    add_recorded(h, form->headers, &cached);
    if (replay) {
        add_header(h, "Idempotent-Replayed", idem_str("true"));
    }
    if (replay && !cached) {
        add_header(h, "Cache-Control", idem_str("no-store"));
    }
}

static void add_body(struct idem__buffer *to, const struct idem_form *form)
{
    struct idem__buffer joined = {0};
    struct idem_slice body = output_of(form, &joined);
    bool is_text = idem__utf8_is(body);

    idem__lambda_member_name(to, "body");
    if (is_text) {
        idem__lambda_string(to, body);
    } else {
        add_base64(to, body);
    }
    idem__lambda_member_name(to, "isBase64Encoded");
    idem__buffer_str(to, is_text ? "false" : "true");
    to->failed |= joined.failed;
    idem__buffer_free(&joined);
}

void idem__lambda_form_answer(struct idem__buffer *to,
                              struct json_object *event,
                              const struct idem_form *form, bool replay)
{
    struct headers h = {.to = to, .many = idem__lambda_wants_many(event)};
    char start[32];

    idem__buffer_reset(to, to->cap);
    (void)snprintf(start, sizeof(start), "{\"statusCode\":%d",
                   form->http_status);
    idem__buffer_str(to, start);
    idem__lambda_member_name(to, h.many ? "multiValueHeaders" : "headers");
    idem__buffer_str(to, "{");
    add_headers(&h, form, replay);
    idem__buffer_str(to, "}");
    add_body(to, form);
    idem__buffer_str(to, "}");
}
