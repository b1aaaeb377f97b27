/* Store time of a local store. Within a boot only the boot clock moves it, so
 * that a wall clock which is set, or jumps, changes nothing. */
#include "store/local/anchor.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

bool idem__anchor_now(struct idem__anchor *anchor,
                      const struct idem_clock_reading *reading, int64_t last_ms,
                      struct idem_now *ret_now)
{
    bool moved = memcmp(anchor->boot_id, reading->boot_id, 16) != 0 ||
                 anchor->store_ms == 0;

    if (moved) {
        anchor->store_ms = larger(larger(reading->wall_ms, 1),
                                  larger(last_ms, anchor->store_ms));
        anchor->boot_ms = reading->boot_ms;
        memcpy(anchor->boot_id, reading->boot_id, 16);
    }
    memset(ret_now, 0, sizeof(*ret_now));
    ret_now->store_ms =
        anchor->store_ms + larger(reading->boot_ms - anchor->boot_ms, 0);
    ret_now->boot_ms = reading->boot_ms;
    memcpy(ret_now->boot_id, reading->boot_id, 16);
    ret_now->margin_ms = IDEM__OTHER_BOOT_MARGIN_MS;
    return moved;
}
