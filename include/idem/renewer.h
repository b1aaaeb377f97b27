/* idem/renewer.h: one thread that renews the leases of attempts at work.
 *
 * Nothing renews a lease by itself, but for whom asks for it here:
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
 * An attempt is renewed when a third of what is left of its lease has passed; where the
 * store is away, sooner and sooner until it answers. One attempt comes after the other,
 * so a store that does not answer keeps the others waiting for its timeout: take a
 * renewer for each store, and leases of more than three timeouts. */
#ifndef IDEM_RENEWER_H
#define IDEM_RENEWER_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct idem_renewer;

/* Starts the thread. It takes no signals, and does not survive fork().
 *
 * IDEM_EFULL  There can be no more threads.
 * IDEM_ENOMEM
 */
int idem_renewer_create(struct idem_renewer **ret_renewer,
                        struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Renews @attempt from now on, until it is removed: before it is ended or destroyed,
 * and before its store is closed. One whose lease has no end is left alone. From any
 * thread.
 *
 * IDEM_EINVALID  It is not STARTED.
 * IDEM_ENOMEM
 */
int idem_renewer_add(struct idem_renewer *renewer, struct idem_attempt *attempt,
                     struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Renews it no longer, and waits for a renewal that is in flight. From any thread.
 *
 * 0, or
 * IDEM_ELOST     Another caller owns the key now, or a person has decided.
 * IDEM_EINVALID  It was not added.
 */
int idem_renewer_remove(struct idem_renewer *renewer,
                        const struct idem_attempt *attempt);

/* Ends the thread, after a renewal that is in flight. Attempts that are left in it
 * are renewed no longer. NULL is allowed. */
void idem_renewer_destroy(struct idem_renewer *renewer);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
