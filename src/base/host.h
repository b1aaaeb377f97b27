/* host.h: what the library asks of its host: clocks, randomness and sleep, the boot,
 * and what is installed. */
#ifndef IDEM_BASE_HOST_H
#define IDEM_BASE_HOST_H

#include <idem.h>

/* ---- Random bytes: getrandom(2) ------------------------------------------ */

/* Fills @buf with @len unpredictable bytes. 0, or -1 with errno. */
int idem__random(void *buf, size_t len);

/* ---- The boot ------------------------------------------------------------ */

/* Returns the milliseconds since the boot, including those in which the host was
 * suspended, and 16 bytes that differ after every boot: the clock of leases. All
 * processes of a host get the same, whatever their namespaces. 0, or -1: one of the two
 * cannot be read. */
int idem__boot_read(int64_t *ret_ms, uint8_t ret_id[16]);

/* ---- The defaults of struct idem_host ------------------------------------ */

/* Sets the hooks that are NULL to the system's clocks, random bytes and sleep. */
void idem__host_default(struct idem_host *host);

/* The clocks of the system, as a hook: @ctx is not used. 0, or -1. */
int idem__host_clock(void *ctx, struct idem_clock_reading *ret_reading);

/* True if @host takes its random bytes from the system. */
bool idem__host_has_our_random(const struct idem_host *host);

/* CLOCK_MONOTONIC, for deadlines of waits inside this process. */
int64_t idem__mono_ms(void);
int64_t idem__mono_ns(void);

/* @base + @add, at most IDEM_NEVER; neither is negative. */
int64_t idem__time_add(int64_t base, int64_t add);

/* @ms in ns; IDEM_NEVER where it does not fit. */
int64_t idem__time_ns(int64_t ms);

/* ---- What is installed --------------------------------------------------- */

/* Returns the file of trusted certificates: @given unless it is NULL; NULL, for libcurl's
 * own @built_in, if that exists or nothing better is found; else the file of this system,
 * since libcurl may have been built for another one. */
const char *idem__ca_file(const char *given, const char *built_in);

/* Returns false in a static program, which must not suggest installing a library. Defined
 * by loader.c or no_loader.c. */
bool idem__has_loader(void);

#endif
