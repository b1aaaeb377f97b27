/* Store time of a local store: wall time once per boot, then the boot clock. */
#ifndef IDEM_STORE_LOCAL_ANCHOR_H
#define IDEM_STORE_LOCAL_ANCHOR_H

#include <idem/store.h>

/* Store time was @store_ms when the boot clock of @boot_id showed @boot_ms.
 * Zeroed: there is no anchor yet. */
struct idem__anchor {
    uint8_t boot_id[16];
    int64_t boot_ms;
    int64_t store_ms;
};

/* How long after a boot a lease of an earlier boot still counts. */
#define IDEM__OTHER_BOOT_MARGIN_MS 5000

/* Fills in the time members of *@ret_now. If @reading is of another boot than
 * the anchor, the anchor is moved: to wall time, but never behind @last_ms or
 * itself; true then. */
bool idem__anchor_now(struct idem__anchor *anchor,
                      const struct idem_clock_reading *reading, int64_t last_ms,
                      struct idem_now *ret_now);

#endif
