/* Store time of a local store: wall time once per boot, then the boot clock. */
#ifndef IDEM_STORE_LOCAL_ANCHOR_H
#define IDEM_STORE_LOCAL_ANCHOR_H

#include <idem/store.h>

/* Store time was @store_ms when the boot clock of @boot_id showed @boot_ms, and
 * @sure_ms at least: the newest time that was saved in an earlier boot, while
 * nothing is known to keep the wall clock right. Zeroed: no anchor yet. */
struct idem__anchor {
    uint8_t boot_id[16];
    int64_t boot_ms;
    int64_t store_ms;
    int64_t sure_ms; /* At most store_ms. */
    int64_t jump_ms; /* How far store time went on at this boot. */
};

/* How long after a boot a lease of an earlier boot still counts. */
#define IDEM__OTHER_BOOT_MARGIN_MS 5000

/* Fills in the time members of *@ret_now. True if the anchor was moved:
 *
 * - @reading is of another boot: to wall time, but never before @last_ms. If the
 *   wall clock is not synchronised, what has expired is judged as if no time had
 *   passed since @last_ms.
 * - The clock is synchronised by now: what it shows counts, between what was sure
 *   and what was shown.
 * - As much boot time has passed as store time had gone on: that is believed. */
bool idem__anchor_now(struct idem__anchor *anchor,
                      const struct idem_clock_reading *reading, int64_t last_ms,
                      struct idem_now *ret_now);

#endif
