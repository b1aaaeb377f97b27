/* host.h: the services that the library needs from its host: clocks, random bytes,
 * sleep, the boot, and installed files. */
#ifndef IDEM_BASE_HOST_H
#define IDEM_BASE_HOST_H

#include <idem.h>

/* ---- Random bytes: getrandom(2) ------------------------------------------ */

/* Fills @buf with @len unpredictable bytes. Returns 0, or -1 with errno. */
int idem__random(void *buf, size_t len);

/* ---- The boot ------------------------------------------------------------ */

/* Reads the clock of leases: the milliseconds since the boot, including those in which
 * the host was suspended, and 16 bytes that differ after every boot. All processes of a
 * host get the same values, whatever their namespaces. Returns 0, or -1 if one of the
 * two cannot be read. */
int idem__boot_read(int64_t *ret_ms, uint8_t ret_id[16]);

/* ---- The defaults of struct idem_host ------------------------------------ */

/* Sets the hooks that are NULL to the system's clocks, random bytes and sleep. */
void idem__host_default(struct idem_host *host);

/* Reads the clocks of the system; for the hook clock, so @ctx is not used. Returns 0 or
 * -1. */
int idem__host_clock(void *ctx, struct idem_clock_reading *ret_reading);

/* True if @host takes its random bytes from the system. */
bool idem__host_has_our_random(const struct idem_host *host);

/* Return CLOCK_MONOTONIC, for deadlines of waits inside this process. */
int64_t idem__mono_ms(void);
int64_t idem__mono_ns(void);

/* Returns @base + @add, at most IDEM_NEVER. Neither may be negative. */
int64_t idem__time_add(int64_t base, int64_t add);

/* Returns @ms in ns; IDEM_NEVER if that does not fit. */
int64_t idem__time_ns(int64_t ms);

/* ---- Installed files ------------------------------------------------------ */

/* Returns the file of trusted certificates for libcurl. That is @given, unless it is
 * NULL. NULL means libcurl's own @built_in, if that file exists or no better one is
 * found. Otherwise it is the file of this system, because libcurl may have been built
 * for another one. */
const char *idem__ca_file(const char *given, const char *built_in);

/* Returns false in a static program, whose messages must not suggest installing a
 * library. loader.c or no_loader.c defines it. */
bool idem__has_loader(void);

#endif
