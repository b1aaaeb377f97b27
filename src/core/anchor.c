/* Store time of a local store. Within a boot only the boot clock moves it, so
 * that a wall clock which is set, or jumps, changes nothing.
 *
 * The wall clock is looked at once in a boot, and may be wrong then: a clock that
 * is days ahead would expire what is days old, for good. So a time that nothing
 * vouches for is shown and written into records, but does not expire anything:
 * that is judged by the boot time that has passed since the last saved time, which
 * is certain. A clock that was ahead is so put right within its boot. One that
 * was late is not: records of this boot would seem to be older than they
 * are. */

#include "contract/parts.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void begin_boot(struct idem_anchor *anchor,
                       const struct idem_clock_reading *reading,
                       int64_t last_ms)
{
    bool first = anchor->store_ms == 0 && last_ms == 0;
    int64_t known_ms = larger(last_ms, anchor->sure_ms);

    anchor->store_ms = larger(larger(reading->wall_ms, 1), known_ms);
    anchor->sure_ms =
        first || !reading->unsynchronised ? anchor->store_ms : known_ms;
    anchor->jump_ms = first ? 0 : anchor->store_ms - known_ms;
    anchor->boot_ms = reading->boot_ms;
    memcpy(anchor->boot_id, reading->boot_id, 16);
}

/* Ends the doubt, where there is reason to. True: it did. */
static bool believe(struct idem_anchor *anchor,
                    const struct idem_clock_reading *reading)
{
    int64_t passed_ms = larger(reading->boot_ms - anchor->boot_ms, 0);
    int64_t now_ms = anchor->store_ms + passed_ms;
    int64_t gap_ms = anchor->store_ms - anchor->sure_ms;

    if (!reading->unsynchronised && reading->wall_ms < now_ms) {
        int64_t back_ms = now_ms - reading->wall_ms;

        /* It was ahead: back to the truth, as far as that is sure. */
        anchor->store_ms -= back_ms < gap_ms ? back_ms : gap_ms;
        anchor->jump_ms -= back_ms < gap_ms ? back_ms : gap_ms;
    }
    if (!reading->unsynchronised || passed_ms >= gap_ms) {
        anchor->sure_ms = anchor->store_ms;
        return true;
    }
    return false;
}

bool idem__anchor_now(struct idem_anchor *anchor,
                      const struct idem_clock_reading *reading, int64_t last_ms,
                      struct idem_now *ret_now)
{
    bool other_boot = memcmp(anchor->boot_id, reading->boot_id, 16) != 0 ||
                      anchor->store_ms == 0;
    bool moved;

    if (other_boot) {
        begin_boot(anchor, reading, last_ms);
    }
    moved = !other_boot && anchor->sure_ms < anchor->store_ms &&
            believe(anchor, reading);
    memset(ret_now, 0, sizeof(*ret_now));
    ret_now->store_ms =
        anchor->store_ms + larger(reading->boot_ms - anchor->boot_ms, 0);
    ret_now->doubt_ms = anchor->store_ms - anchor->sure_ms;
    ret_now->boot_ms = reading->boot_ms;
    memcpy(ret_now->boot_id, reading->boot_id, 16);
    ret_now->margin_ms = IDEM_OTHER_BOOT_MARGIN_MS;
    return other_boot || moved;
}
