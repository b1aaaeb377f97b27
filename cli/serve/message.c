/* One message of a client. */
#include "serve/message.h"

#include "core/slice.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    NODES_MAX = 1 << 20, /* Values in one message. */
};

void serve_message_refuse(struct serve_message *m, int code, const char *member,
                          const char *format, ...)
{
    va_list args;

    if (m->code != 0) {
        return;
    }
    m->code = code;
    if (member != NULL) {
        (void)snprintf(m->member, sizeof(m->member), "%s", member);
    }
    va_start(args, format);
    (void)vsnprintf(m->text, sizeof(m->text), format, args);
    va_end(args);
}

void serve_param_refuse(struct serve_message *m, const char *member,
                        const char *format, ...)
{
    char why[sizeof(m->text)];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    serve_message_refuse(m, SERVE_BAD_PARAMS, member, "%s: %s", member, why);
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

/* The members of the message itself. One that is missing is the object itself: of no
 * kind that a scalar may have, and without parameters. */
static void read_envelope(struct serve_message *m)
{
    const struct idem__tree *tree = m->tree;
    uint32_t number = serve_member(tree, 0, idem_str("params"));
    const struct idem__tree_node *params = idem__tree_at(tree, number);
    const struct idem__tree_node *id =
        idem__tree_at(tree, serve_member(tree, 0, idem_str("id")));
    const struct idem__tree_node *version =
        idem__tree_at(tree, serve_member(tree, 0, idem_str("jsonrpc")));
    const struct idem__tree_node *method =
        idem__tree_at(tree, serve_member(tree, 0, idem_str("method")));

    if (id->kind != IDEM__TREE_STRING && id->kind != IDEM__TREE_NUMBER) {
        serve_message_refuse(m, SERVE_NOT_A_REQUEST, NULL,
                             "id: expected a string or a number");
    } else if (id->to - id->from > SERVE_ID_MAX) {
        serve_message_refuse(m, SERVE_NOT_A_REQUEST, NULL,
                             "id: at most %d bytes", SERVE_ID_MAX);
    } else {
        m->id = idem__tree_raw(tree, id);
    }
    if (!serve_is_text(idem__tree_raw(tree, version), "\"2.0\"")) {
        serve_message_refuse(m, SERVE_NOT_A_REQUEST, NULL, "jsonrpc: \"2.0\"");
    }
    if (tree->halves) {
        serve_message_refuse(m, SERVE_NOT_A_REQUEST, NULL,
                             "half of a surrogate pair is not valid UTF-8");
    }
    if (method->kind != IDEM__TREE_STRING) {
        serve_message_refuse(m, SERVE_NOT_A_REQUEST, NULL,
                             "method: expected the name of a method");
    } else {
        m->method = idem__tree_text(tree, method);
    }
    if (params->kind != IDEM__TREE_OBJECT) {
        serve_message_refuse(m, SERVE_BAD_PARAMS, NULL,
                             "params: expected an object of named parameters");
    }
    m->params = number;
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
                             NULL, "%s", error.text);
    } else if (idem__tree_at(tree, 0)->kind != IDEM__TREE_OBJECT) {
        serve_message_refuse(ret_message, SERVE_NOT_A_REQUEST, NULL,
                             "expected one JSON object per line");
    } else {
        read_envelope(ret_message);
    }
    return ret_message->code == 0;
}
