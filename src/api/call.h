/* Shared by the blocking verbs: running their ops, and checking the arguments of
 * callers. */
#ifndef IDEM_API_CALL_H
#define IDEM_API_CALL_H

#include "contract/store.h"

#include <idem.h>
#include <idem/operator.h>
#include <idem/queue.h>

/* Submits @op and waits for its answer. While it is unknown whether the op was applied,
 * it asks again with the same nonce, until the store's timeout is over. On success *@op
 * is answered. On failure the op was destroyed, or left to the store, and *@op is
 * NULL. */
int idem__call(struct idem_store *store, struct idem_op **op,
               struct idem_error *error);

enum {
    IDEM__ASKED_MAX = 2
};

/* One op of a blocking call. Set op, and zero the rest. */
struct idem__asked {
    struct idem_op *op;      /* NULL: it was left to the store. */
    struct idem_error error; /* The answer of the last try. */
    bool unknown;            /* A copy of it may have been applied. */
    bool under_way;
    bool again;
};

/* Like idem__call(), for @n ops at once (IDEM__ASKED_MAX at most): submits them
 * together, and settles each. Once one op has failed for good, it does not ask again
 * for the ops after it. */
void idem__ask(struct idem_queue *queue, struct idem__asked *asked, size_t n);

/* Destroys the op, which failed. If it may have made a claim, this first sends a
 * release of that claim, as far as it can without waiting. */
void idem__asked_drop(struct idem_queue *queue, struct idem__asked *asked);

/* Turns @op, a begin that has a fence, into the release of its claim, and hands it to
 * the store as far as it can without waiting. @op is gone afterwards. */
void idem__withdraw(struct idem_queue *queue, struct idem_op *op);

/* idem_begin() in two halves: the first creates the op of its first look; the second
 * takes the answer, waits if the request says so, and creates the attempt. It destroys
 * @op. */
int idem__begin_op(const struct idem_request *request, struct idem_op **ret_op,
                   struct idem_error *error);
int idem__begin_answered(struct idem_store *store,
                         const struct idem_request *request, struct idem_op *op,
                         struct idem_attempt **ret_attempt,
                         struct idem_error *error);

/* Returns 0, or IDEM_EINVALID if a transaction of the caller holds @attempt. */
int idem__check_in_store(const struct idem_attempt *attempt,
                         struct idem_error *error);

/* Updates @attempt after its end returned @code; if that is 0, it takes @op. */
void idem__end_answered(struct idem_attempt *attempt, int code,
                        struct idem_op *op);

/* Returns the boot clock of the store's host in ms; IDEM_NEVER if it cannot be read. */
int64_t idem__boot_ms(const struct idem_store *store);

/* Creates the op of idem_resolve() and idem_reopen(). */
int idem__op_resolve(const struct idem_store *store, struct idem_slice scope,
                     struct idem_slice key, uint64_t fence,
                     struct idem_slice who, const struct idem_outcome *outcome,
                     unsigned flags, struct idem_op **ret_op,
                     struct idem_error *error);

/* ---- Checking arguments: arguments.c ---- */

/* These return 0, or IDEM_EINVALID with a sentence that names the member and its
 * range. */
int idem__check_names(struct idem_slice scope, struct idem_slice key,
                      struct idem_error *error);
/* Returns @text, or an empty slice if it is not a traceparent of version 00. */
struct idem_slice idem__traceparent(struct idem_slice text);

int idem__check_request(const struct idem_request *request,
                        struct idem_error *error);
int idem__check_duration(const char *name, int64_t ms, int64_t min_ms,
                         bool may_be_never, struct idem_error *error);

/* ---- The place of a list: list_place.c ---- */

/* A place is a position in a list as text, from which another process continues it. */

/* Writes the cursor of the list @op of @store as a place. */
void idem__list_place_write(const struct idem_store *store,
                            const struct idem_op *op,
                            char place[IDEM_PLACE_MAX]);

/* Sets the cursor of @op, whose filter is set, to @place. Returns 0, or IDEM_EINVALID
 * if the place was not written for a list of this kind of store with this filter. */
int idem__list_place_read(const struct idem_store *store,
                          const char place[IDEM_PLACE_MAX], struct idem_op *op);

#endif
