/* One message of a client. */
#include "serve/message.h"

#include "core/slice.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    NODES_MAX = 1 << 20, /* Values in one message. */
};

void serve_message_refuse(struct serve_message *m, int code, const char *format,
                          ...)
{
    va_list args;

    if (m->code != 0) {
        return;
    }
    m->code = code;
    va_start(args, format);
    (void)vsnprintf(m->text, sizeof(m->text), format, args);
    va_end(args);
}

void serve_param_refuse(struct serve_message *m, const char *member,
                        const char *format, ...)
{
    char why[sizeof(m->text)];
    va_list args;

    if (m->code == 0) {
        (void)snprintf(m->member, sizeof(m->member), "%s", member);
    }
    va_start(args, format);
    (void)vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    serve_message_refuse(m, SERVE_BAD_PARAMS, "%s: %s", member, why);
}

bool serve_is_text(struct idem_slice s, const char *text)
{
    return idem__slice_equal(s, idem_str(text));
}

uint32_t serve_member(const struct idem__tree *tree, uint32_t object,
                      struct idem_slice name)
{
    uint32_t end = idem__tree_at(tree, object)->end;
    uint32_t i;

    for (i = object + 1; i < end; i = idem__tree_at(tree, i)->end) {
        if (idem__slice_equal(idem__tree_name(tree, idem__tree_at(tree, i)),
                              name)) {
            return i;
        }
    }
    return 0;
}

/* ---- The message --------------------------------------------------------- */

/* The member @name of the message itself. If it is missing, this is the object itself,
 * which is no scalar, and serves as empty parameters. */
static const struct idem__tree_node *envelope(const struct serve_message *m,
                                              const char *name)
{
    return idem__tree_at(m->tree, serve_member(m->tree, 0, idem_str(name)));
}

static void read_envelope(struct serve_message *m)
{
    const struct idem__tree *tree = m->tree;
    const struct idem__tree_node *id = envelope(m, "id");
    const struct idem__tree_node *version = envelope(m, "jsonrpc");
    const struct idem__tree_node *method = envelope(m, "method");
    const int code = SERVE_NOT_A_REQUEST;

    if (id->kind != IDEM__TREE_STRING && id->kind != IDEM__TREE_NUMBER) {
        serve_message_refuse(m, code, "id: expected a string or a number");
    } else if (id->to - id->from > SERVE_ID_MAX) {
        serve_message_refuse(m, code, "id: at most %d bytes", SERVE_ID_MAX);
    } else {
        m->id = idem__tree_raw(tree, id);
    }
    if (!serve_is_text(idem__tree_raw(tree, version), "\"2.0\"")) {
        serve_message_refuse(m, code, "jsonrpc: \"2.0\"");
    }
    if (tree->halves) {
        serve_message_refuse(m, code,
                             "half of a surrogate pair is not valid UTF-8");
    }
    if (method->kind != IDEM__TREE_STRING) {
        serve_message_refuse(m, code, "method: expected the name of a method");
    } else {
        m->method = idem__tree_text(tree, method);
    }
    m->params = serve_member(tree, 0, idem_str("params"));
    if (idem__tree_at(tree, m->params)->kind != IDEM__TREE_OBJECT) {
        serve_message_refuse(m, SERVE_BAD_PARAMS,
                             "params: expected an object of named parameters");
    }
}

bool serve_message_read(struct idem__tree *tree, struct idem_slice line,
                        struct serve_message *ret_message)
{
    struct idem_error error = {0};
    int rc;

    memset(ret_message, 0, sizeof(*ret_message));
    ret_message->tree = tree;
    tree->nodes_max = NODES_MAX;
    tree->len_max = UINT32_MAX; /* The line has its own limit. */
    rc = idem__tree_read(tree, line, &error);
    if (rc != 0) {
        serve_message_refuse(ret_message,
                             tree->twins ? SERVE_NOT_A_REQUEST : SERVE_NOT_JSON,
                             "%s", error.text);
    } else if (idem__tree_at(tree, 0)->kind != IDEM__TREE_OBJECT) {
        serve_message_refuse(ret_message, SERVE_NOT_A_REQUEST,
                             "expected one JSON object per line");
    } else {
        read_envelope(ret_message);
    }
    return ret_message->code == 0;
}
