/* Which boot of the host this is, and the time since: the clock of leases. */
#ifndef IDEM_BASE_BOOT_H
#define IDEM_BASE_BOOT_H

#include <stdint.h>

/* The milliseconds since the boot, with those in which the host was suspended, and
 * 16 bytes that are others after every boot. All processes of a host get the same,
 * in whatever namespace they are. 0, or -1: one of them cannot be read. */
int idem__boot_read(int64_t *ret_ms, uint8_t ret_id[16]);

#endif
