/* How the blocking verbs check what they are given, and run their ops. */
#ifndef IDEM_API_CALL_H
#define IDEM_API_CALL_H

#include "contract/store.h"

#include <idem.h>
#include <idem/operator.h>
#include <idem/queue.h>

/* Submits @op and waits for its answer, asking again (the same nonce) while it
 * is unknown whether it was applied, until the store's timeout is over. On
 * success *@op is answered. On failure it was destroyed, or left to the store;
 * *@op is NULL then. */
int idem__call(struct idem_store *store, struct idem_op **op,
               struct idem_error *error);

enum {
    IDEM__ASKED_MAX = 2
};

/* One op of a blocking call. Zeroed, but for op. */
struct idem__asked {
    struct idem_op *op;      /* NULL: it was left to the store. */
    struct idem_error error; /* How it ended. */
    bool unknown;            /* Some copy of it may have been applied. */
    bool under_way;
    bool again;
};

/* As idem__call(), for @n ops at once, IDEM__ASKED_MAX at most: they are submitted
 * together, and each is settled. Once one has failed for good, those after it are
 * not asked for again. */
void idem__ask(struct idem_queue *queue, struct idem__asked *asked, size_t n);

/* Destroys the op, which failed; a claim that may have been made is given back as
 * far as that can be done without waiting. */
void idem__asked_drop(struct idem_queue *queue, struct idem__asked *asked);

/* Makes @op, a begin that has a fence, the release of its claim and hands it to the
 * store, as far as that can be done without waiting. @op is gone. */
void idem__withdraw(struct idem_queue *queue, struct idem_op *op);

/* idem_begin() in two halves: the op of its first look, and what follows its
 * answer, waiting and the attempt. @op is destroyed. */
int idem__begin_op(const struct idem_request *request, struct idem_op **ret_op,
                   struct idem_error *error);
int idem__begin_answered(struct idem_store *store,
                         const struct idem_request *request, struct idem_op *op,
                         struct idem_attempt **ret_attempt,
                         struct idem_error *error);

/* IDEM_EINVALID, where @attempt lives in a transaction of its caller. */
int idem__check_in_store(const struct idem_attempt *attempt,
                         struct idem_error *error);

/* Sets how the end of @attempt came out: @op is given to it, if @code is 0. */
void idem__end_answered(struct idem_attempt *attempt, int code,
                        struct idem_op *op);

/* The boot clock of the store's host; IDEM_NEVER when it does not answer. */
int64_t idem__boot_ms(const struct idem_store *store);

/* The op of idem_resolve() and idem_reopen(). */
int idem__op_resolve(const struct idem_store *store, struct idem_slice scope,
                     struct idem_slice key, uint64_t fence,
                     struct idem_slice who, const struct idem_outcome *outcome,
                     unsigned flags, struct idem_op **ret_op,
                     struct idem_error *error);

/* ---- Checking what callers give: check.c ---- */

/* 0, or IDEM_EINVALID with a sentence that names the member and its range. */
int idem__check_names(struct idem_slice scope, struct idem_slice key,
                      struct idem_error *error);
/* @text, or nothing where it is not a traceparent of version 00. */
struct idem_slice idem__traceparent(struct idem_slice text);

int idem__check_request(const struct idem_request *request,
                        struct idem_error *error);
int idem__check_duration(const char *name, int64_t ms, int64_t min_ms,
                         bool may_be_never, struct idem_error *error);

/* ---- Where a list goes on: list_place.c ---- */

/* A place in a list as text, by which another process goes on with it. */

/* Writes the cursor of the list @op of @store. */
void idem__list_place_write(const struct idem_store *store,
                            const struct idem_op *op,
                            char place[IDEM_PLACE_MAX]);

/* Sets the cursor of @op, whose filter is set, to @place. 0, or IDEM_EINVALID: it
 * was not written for a list of this kind of store with this filter. */
int idem__list_place_read(const struct idem_store *store,
                          const char place[IDEM_PLACE_MAX], struct idem_op *op);

#endif
