/* Keeps the lease while the command runs. */
#include "run/lease.h"

#include "base/crash.h"
#include "process/descriptors.h"
#include "process/host.h"
#include "run/channel.h"
#include "run/self_report.h"

#define RETRY_MIN_MS 100 /* Between two attempts at a store that is away. */

static void set_limit(struct lease *lease, int64_t kill_at_ms)
{
    struct supervisor_order order = {
        .kind = SUPERVISOR_LEASE,
        .kill_at_ms = kill_at_ms,
    };

    (void)supervisor_tell(lease->supervisor, &order, &channel_no_fds);
}

static void renew_in(struct lease *lease, int64_t ms)
{
    lease->renew_at_ms = io_now_ms() + (ms > RETRY_MIN_MS ? ms : RETRY_MIN_MS);
}

/* Every third; or earlier, where the margin of the store is so much of a short
 * lease that the work would be told to stop before the first one came. */
static void renew_in_time(struct lease *lease)
{
    int64_t third_ms = lease->length_ms / 3;
    int64_t left_ms = idem_attempt_lease_left_ms(lease->attempt) -
                      lease_grace_ms(lease, INT64_MAX);

    renew_in(lease, third_ms < left_ms / 2 ? third_ms : left_ms / 2);
}

void lease_init(struct lease *lease, struct idem_store *store,
                struct idem_attempt *attempt,
                const struct supervisor *supervisor)
{
    memset(lease, 0, sizeof(*lease));
    lease->supervisor = supervisor;
    lease->store = store;
    lease->attempt = attempt;
    lease->length_ms = attempt->record->lease_ms;
    lease->renew_at_ms = INT64_MAX;
    if (lease->length_ms != IDEM_NEVER) {
        renew_in_time(lease);
    }
}

int64_t lease_kill_at_ms(const struct lease *lease)
{
    int64_t left_ms = idem_attempt_lease_left_ms(lease->attempt);

    return left_ms == IDEM_NEVER ? SUPERVISOR_NEVER : io_now_ms() + left_ms;
}

bool lease_is_over(const struct lease *lease)
{
    return idem_attempt_lease_left_ms(lease->attempt) == 0;
}

int64_t lease_grace_ms(const struct lease *lease, int64_t wanted_ms)
{
    return wanted_ms < lease->length_ms / 4 ? wanted_ms : lease->length_ms / 4;
}

int64_t lease_wait_ms(const struct lease *lease)
{
    int64_t ms = lease->renew_at_ms - io_now_ms();

    if (lease->renew_at_ms == INT64_MAX) {
        return -1;
    }
    return ms > 0 ? ms : 0;
}

static void stop_or_let_go(struct lease *lease)
{
    lease_let_go(lease);
    if (self_report(lease->store, lease->attempt) != 0) {
        set_limit(lease, SUPERVISOR_NEVER);
    } else {
        supervisor_say(lease->supervisor, SUPERVISOR_STOP);
    }
}

static void renew(struct lease *lease)
{
    int rc = idem_renew(lease->attempt, /* lease_ms= */ 0, &lease->error);

    if (rc == 0) {
        IDEM__CRASH_POINT("run/lease/renewed");
        lease->error.code = 0;
        set_limit(lease, lease_kill_at_ms(lease));
        renew_in_time(lease);
    } else if (rc == IDEM_ELOST) {
        stop_or_let_go(lease);
    } else {
        renew_in(lease, lease->length_ms / 24);
    }
}

void lease_tick(struct lease *lease)
{
    if (lease_wait_ms(lease) == 0) {
        renew(lease);
    }
}

void lease_let_go(struct lease *lease)
{
    lease->renew_at_ms = INT64_MAX;
}
