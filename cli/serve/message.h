/* message.h: one message of a client.
 *
 *     {"jsonrpc":"2.0","id":7,"method":"begin","params":{"key":"order-42"}}
 *
 * The tree is strict: it refuses a name that comes twice, half of a surrogate pair, and
 * text that is not UTF-8.
 */
#ifndef IDEM_CLI_SERVE_MESSAGE_H
#define IDEM_CLI_SERVE_MESSAGE_H

#include "key/tree.h"

enum {
    SERVE_ID_MAX = 128, /* Bytes of an id, as it was written. */

    /* Codes of JSON-RPC. */
    SERVE_NOT_JSON = -32700,
    SERVE_NOT_A_REQUEST = -32600,
    SERVE_NO_METHOD = -32601,
    SERVE_BAD_PARAMS = -32602,
    SERVE_CANCELLED = -32800,
};

struct serve_message {
    struct idem_slice id; /* As it was written; empty: not known. */
    struct idem_slice method;
    const struct idem__tree *tree;
    uint32_t params; /* The number of the object; 0: there is none. */

    /* Why it is refused; 0: it is not. */
    int code;
    char member[48]; /* The parameter that is wrong; empty: none is. */
    char text[252];

    struct idem_error error; /* Or why the library refuses it. */
};

/* Reads @line into @tree, which is zeroed or was used before, and points to both. False:
 * it is refused. */
bool serve_message_read(struct idem__tree *tree, struct idem_slice line,
                        struct serve_message *ret_message);

/* Refuses the message, unless that was done before. */
void serve_message_refuse(struct serve_message *m, int code, const char *format,
                          ...) __attribute__((format(printf, 3, 4)));

/* The same for the parameter @member: "MEMBER: " + the sentence. */
void serve_param_refuse(struct serve_message *m, const char *member,
                        const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The member @name of the object @object; 0: it has none. */
uint32_t serve_member(const struct idem__tree *tree, uint32_t object,
                      struct idem_slice name);

bool serve_is_text(struct idem_slice s, const char *text);

#endif
