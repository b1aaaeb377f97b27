/* idem/renewer.h: one thread that renews the leases of attempts at work.
 *
 * Nothing renews a lease automatically except this thread:
 *
 *     idem_renewer_create(&renewer, &error)
 *     |
 *     idem_begin(store, &request, &attempt, &error)     IDEM_STARTED
 *     idem_renewer_add(renewer, attempt, &error)
 *     |
 *     the work                  idem_attempt_lease_left_ms(attempt) is 0 once the
 *     |                         attempt is lost: start no further effect
 *     idem_renewer_remove(renewer, attempt)
 *     idem_complete(attempt, &result, &error)
 *     |
 *     idem_renewer_destroy(renewer)
 *
 * The thread renews an attempt once a third of its remaining lease has passed; while
 * the store does not answer, it tries more often the closer the end of the lease is. It
 * renews one attempt at a time, so while it waits for a store, the other attempts wait
 * too: use a renewer for each store, and leases longer than three timeouts of the
 * store. */
#ifndef IDEM_RENEWER_H
#define IDEM_RENEWER_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct idem_renewer;

/* Starts the thread, which blocks all signals and does not survive fork(). The caller
 * destroys *@ret_renewer.
 *
 * IDEM_EFULL   No more threads can be created.
 * IDEM_ENOMEM
 */
int idem_renewer_create(struct idem_renewer **ret_renewer,
                        struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Renews @attempt from now on. Remove it before you end or destroy it, and before you
 * close its store. A lease without an end needs no renewal. Any thread may call this.
 *
 * IDEM_EINVALID  @attempt is not STARTED.
 * IDEM_ENOMEM
 */
int idem_renewer_add(struct idem_renewer *renewer, struct idem_attempt *attempt,
                     struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Stops renewing @attempt, and waits for a renewal in flight. Any thread may call this.
 *
 * 0, or
 * IDEM_ELOST     Another caller owns the key now, or a person has decided.
 * IDEM_EINVALID  @attempt was not added.
 */
int idem_renewer_remove(struct idem_renewer *renewer,
                        const struct idem_attempt *attempt);

/* Ends the thread, after a renewal in flight. Attempts that were not removed are no
 * longer renewed. NULL is allowed. */
void idem_renewer_destroy(struct idem_renewer *renewer);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
