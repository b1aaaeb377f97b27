/* Keeps the time of a local store. Within a boot only the boot clock moves it, so setting
 * the wall clock changes nothing.
 *
 * The store reads the wall clock once per boot, and that reading may be wrong: a clock
 * that is days ahead would expire the records of those days for good. So a time that no
 * synchronised clock has confirmed is shown and written into records, but nothing expires
 * by it. Expiry goes by the last saved time plus the boot time since, which is certain. A
 * clock that was ahead is corrected within the same boot. A clock that was slow is not:
 * the records of this boot would then seem older than they are. */

#include "contract/parts.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Starts the store's time for this boot, never before the last saved time. */
static void begin_boot(struct idem_anchor *anchor,
                       const struct idem_clock_reading *reading,
                       int64_t last_ms)
{
    bool first = anchor->store_ms == 0 && last_ms == 0;
    int64_t known_ms = larger(last_ms, anchor->sure_ms);

    /* The store's time never runs backwards, however slow the wall clock is after this
     * boot. */
    anchor->store_ms = larger(larger(reading->wall_ms, 1), known_ms);
    /* A store that is new has no record that a wrong time could expire. */
    anchor->sure_ms =
        first || !reading->unsynchronised ? anchor->store_ms : known_ms;
    anchor->jump_ms = first ? 0 : anchor->store_ms - known_ms;
    anchor->boot_ms = reading->boot_ms;
    memcpy(anchor->boot_id, reading->boot_id, 16);
}

/* Ends the doubt about the time once a synchronised clock confirms it, or once this boot
 * has lasted as long as the time was in doubt. True if it did. */
static bool believe(struct idem_anchor *anchor,
                    const struct idem_clock_reading *reading)
{
    int64_t passed_ms = larger(reading->boot_ms - anchor->boot_ms, 0);
    int64_t now_ms = anchor->store_ms + passed_ms;
    int64_t gap_ms = anchor->store_ms - anchor->sure_ms;

    if (!reading->unsynchronised && reading->wall_ms < now_ms) {
        int64_t back_ms = now_ms - reading->wall_ms;

        /* The time was ahead: set it back, but not below what is certain. */
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

    /* The boot clock began anew, so the time that has passed since the old anchor is
     * unknown. */
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
