/* lease.h: renews the lease while the command runs, and tells the supervisor when it
 * ends.
 *
 * It is renewed every third of its length, or as often as a short one needs. A
 * store that does not answer is asked again; the supervisor ends the work in time if
 * it stays away. If the record belongs to another attempt, the work ends at
 * once. If the command has said itself how it ended, there is nothing to keep,
 * and it may go on.
 */
#ifndef IDEM_CLI_RUN_LEASE_H
#define IDEM_CLI_RUN_LEASE_H

#include "run/supervisor.h"

#include <idem.h>

struct lease {
    const struct supervisor *supervisor;
    struct idem_store *store;
    struct idem_attempt *attempt;
    int64_t length_ms;
    int64_t renew_at_ms;     /* By io_now_ms(); INT64_MAX: never again. */
    struct idem_error error; /* Of the last renewal; code 0: it worked. */
};

/* @attempt was STARTED. */
void lease_init(struct lease *lease, struct idem_store *store,
                struct idem_attempt *attempt,
                const struct supervisor *supervisor);

/* When no work may be left, by io_now_ms(): the end of the lease less the margin
 * of the store; SUPERVISOR_NEVER. */
int64_t lease_kill_at_ms(const struct lease *lease);

/* True once no effect may be started. */
bool lease_is_over(const struct lease *lease);

/* How long before that SIGTERM is sent: @wanted_ms, but at most a quarter of the
 * lease, so that a late renewal still comes before it. */
int64_t lease_grace_ms(const struct lease *lease, int64_t wanted_ms);

/* How long until lease_tick() has something to do; -1: it never has. */
int64_t lease_wait_ms(const struct lease *lease);

/* Renews if it is time to. */
void lease_tick(struct lease *lease);

/* The work is told to stop, and does stop: it is not renewed any more. */
void lease_let_go(struct lease *lease);

#endif
