/* A rate limit in a table, and the requests about it, as JSON. Pure.
 *
 * There is one item for each window, with an attribute for each request that it
 * remembers:
 *
 *     id   "limit#" and the window in hex
 *     lim  what was taken; by it each item of a limit is told from a record
 *     rNNN the entry of request NNN (16 bytes of its identity, in base64)
 *     refs refusals that are remembered, if there are any
 *     gen  how often entries were moved out; none: never
 *     ttl  in seconds
 *
 * One conditional update counts a request: it is within the limit and has no entry. So
 * the count is exact, and an unanswered update is sent again as it is.
 *
 * An update costs a write unit for each KB of the item. So that it stays small, limits
 * of more than IDEM__LIMIT_ALONE move entries out, 25 at a time: each to an item of
 * its own (id "limit#rNNN", lim is the entry). First these are written, and only then
 * are the entries taken out of the window's item, by an update that adds 1 to gen.
 *
 * Where gen is there, a request without an entry in the window may have been moved. So
 * its own item is read after gen was, and the update that counts it is conditional on
 * that gen: had the entry been moved since, gen would be another one; had it been moved
 * before, the reading would have shown it. Nothing relies on who moves entries, or on
 * whether it comes to an end: it writes what is there already, however late.
 *
 * No item knows max: it is compared with what was taken, so that a limit whose max is
 * changed goes on with what was counted. */
#ifndef IDEM_AWS_DYNAMODB_LIMIT_LIMIT_REQUEST_H
#define IDEM_AWS_DYNAMODB_LIMIT_LIMIT_REQUEST_H

#include "aws/dynamodb/layout/request_json.h"
#include "limit/limit.h"

enum {
    /* Up to here an item with all entries, of 3.7 KB, is cheaper than moving them. */
    IDEM__LIMIT_ALONE = 128,
    IDEM__LIMIT_MOVED = 25, /* The most that BatchWriteItem takes. */
    IDEM__LIMIT_ID_MAX = 96 /* With a NUL. */
};

/* The contents of a window's item. */
struct idem__limit_window {
    struct idem_limit_state state;
    uint64_t moves;   /* gen; 0: none. */
    unsigned entries; /* Of whatever requests. */
};

/* Counts the request if there is room, nothing is known of it, and gen is @moves;
 * remembers a refusal as it was decided on the window. Both show the window. */
void idem__limit_request_admit(struct idem__buffer *out,
                               const struct idem__table_conf *table,
                               const struct idem_op *op, uint64_t moves);
void idem__limit_request_refuse(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem_op *op, uint64_t moves,
                                const struct idem_limit_decision *decision);

/* Reads the item of the window, or of the request, strongly. */
void idem__limit_request_window(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem_op *op);
void idem__limit_request_entry(struct idem__buffer *out,
                               const struct idem__table_conf *table,
                               const struct idem_op *op);

/* Writes the first IDEM__LIMIT_MOVED entries of @window, the item of @op's window, as
 * items; takes the same ones out of it if gen is still @moves, and shows it. */
void idem__limit_request_move(struct idem__buffer *out,
                              const struct idem__table_conf *table,
                              const struct idem_op *op, json_object *window);
void idem__limit_request_trim(struct idem__buffer *out,
                              const struct idem__table_conf *table,
                              const struct idem_op *op, json_object *window,
                              uint64_t moves);

/* The contents of an item. 0 or IDEM_ECORRUPT. @item NULL: nothing. */
int idem__limit_read_window(json_object *item, const struct idem_op *op,
                            struct idem__limit_window *ret_window);
int idem__limit_read_entry(json_object *item,
                           struct idem_limit_state *ret_state);

#endif
