/* A rate limit in a table, and the requests about it as JSON. Pure.
 *
 * Each window is an item, with an attribute for each request that it remembers:
 *
 *     id   "limit#" and the window in hex
 *     lim  how much was taken; only items of limits, and the mark of a move, have it
 *     rNNN the entry of request NNN (16 bytes of its identity, in base64)
 *     refs how many refusals are remembered; missing: none
 *     gen  how often entries were moved out; missing: never
 *     ttl  in seconds
 *
 * One update counts a request, on condition that it is within the limit and has no entry.
 * So the count is exact, and an update that was not answered can be sent again as it is.
 *
 * An update costs a write unit for each KB of the item. To keep the item small, limits of
 * more than IDEM__LIMIT_ALONE move entries out, 25 at a time: each goes to an item of its
 * own (id "limit#rNNN", lim is the entry). These items are written first. Only then an
 * update takes the entries out of the window's item, and adds 1 to gen.
 *
 * If gen is there, a request without an entry in the window may have been moved. So read
 * gen, then the item of the request, and count the request on condition that gen is still
 * the same. If the entry was moved before, its item shows that; if it was moved since, gen
 * has changed. It does not matter who moves entries, when, and whether it is finished: each
 * step writes only what is on record already.
 *
 * No item has max. Each request compares its own max with what was taken, so a limit whose
 * max changes continues with the same count. */
#ifndef IDEM_AWS_DYNAMODB_LIMIT_LIMIT_REQUEST_H
#define IDEM_AWS_DYNAMODB_LIMIT_LIMIT_REQUEST_H

#include "aws/dynamodb/layout/request_json.h"
#include "limit/limit.h"

enum {
    /* Up to this max, an item with all entries (3.7 KB) costs less than moving them. */
    IDEM__LIMIT_ALONE = 128,
    IDEM__LIMIT_MOVED = 25, /* The most that BatchWriteItem takes. */
    IDEM__LIMIT_ID_MAX = 96 /* With a NUL. */
};

/* The contents of a window's item. */
struct idem__limit_window {
    struct idem_limit_state state;
    uint64_t moves;   /* gen; 0: missing. */
    unsigned entries; /* How many entries the item has. */
};

/* The first counts the request if there is room, it has no entry, and gen is @moves. The
 * second remembers a refusal, if the window is still as it was decided on. Answers and
 * refusals show the window. */
void idem__limit_request_admit(struct idem__buffer *out,
                               const struct idem__table_conf *table,
                               const struct idem_op *op, uint64_t moves);
void idem__limit_request_refuse(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem_op *op, uint64_t moves,
                                const struct idem_limit_decision *decision);

/* Read the item of the window, or that of the request, strongly. */
void idem__limit_request_window(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem_op *op);
void idem__limit_request_entry(struct idem__buffer *out,
                               const struct idem__table_conf *table,
                               const struct idem_op *op);

/* @window is the item of the window. The first writes IDEM__LIMIT_MOVED of its entries as
 * items; the second takes the same ones out of it if gen is still @moves, and shows it. */
void idem__limit_request_move(struct idem__buffer *out,
                              const struct idem__table_conf *table,
                              const struct idem_op *op, json_object *window);
void idem__limit_request_trim(struct idem__buffer *out,
                              const struct idem__table_conf *table,
                              const struct idem_op *op, json_object *window,
                              uint64_t moves);

/* Read the contents of an item (NULL: there is none). Return 0 or IDEM_ECORRUPT. */
int idem__limit_read_window(json_object *item, const struct idem_op *op,
                            struct idem__limit_window *ret_window);
int idem__limit_read_entry(json_object *item,
                           struct idem_limit_state *ret_state);

#endif
