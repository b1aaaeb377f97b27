/* calls.h: calls on their way to the store and back.
 *
 *     serve_call_create()
 *     |
 *     serve_call_submit(call, op, answered)     at the end of the turn, or
 *     serve_call_park(call, due_ms)             the same op later
 *     |
 *     answered(call)                            call->op came back: its code is
 *     |                                         idem_op_code(call->op)
 *     serve_call_end(call)                      after the reply
 *
 * An op that may have been applied is submitted again, for SERVE_SETTLE_MS, before its
 * call gets that answer. It keeps its nonce, so that it recognises its own success. */
#ifndef IDEM_CLI_SERVE_CALLS_H
#define IDEM_CLI_SERVE_CALLS_H

#include "serve/server.h"

/* @id is copied; it is empty for an op that no client asked for. NULL: no memory. */
struct serve_call *serve_call_create(struct serve *serve,
                                     struct serve_conn *conn,
                                     struct idem_slice id);

/* Submits @op, which the call owns from now on. */
void serve_call_submit(struct serve_call *call, struct idem_op *op,
                       void (*answered)(struct serve_call *call));

/* Submits the op of @call again at @due_ms. */
void serve_call_park(struct serve_call *call, int64_t due_ms);

/* The same after a pause that grows. */
void serve_call_retry(struct serve_call *call);

/* Frees it with its op. */
void serve_call_end(struct serve_call *call);

/* The first call of @conn with this id, or NULL. */
struct serve_call *serve_call_find(struct serve *serve,
                                   const struct serve_conn *conn,
                                   struct idem_slice id);

/* Makes the calls that wait for the record @id look again at once. */
void serve_calls_wake(struct serve *serve, const uint8_t *id);

/* Submits what is due at @now_ms. */
void serve_calls_due(struct serve *serve, int64_t now_ms);

/* Hands all ops over to the queue, and takes the answers that are there. */
void serve_calls_run(struct serve *serve);

/* Frees all calls without answering them. */
void serve_calls_finish(struct serve *serve);

#endif
