/* The system's clocks, randomness and sleep: the defaults of struct idem_host. */
#ifndef IDEM_BASE_HOST_H
#define IDEM_BASE_HOST_H

#include <idem.h>

/* Fills in the hooks that are NULL. */
void idem__host_default(struct idem_host *host);

/* True if its random numbers are the system's. */
bool idem__host_has_our_random(const struct idem_host *host);

/* CLOCK_MONOTONIC, for deadlines of waits inside this process. */
int64_t idem__mono_ms(void);
int64_t idem__mono_ns(void);

/* @base + @add, at most IDEM_NEVER; neither is negative. */
int64_t idem__time_add(int64_t base, int64_t add);

/* @ms in ns; IDEM_NEVER where it does not fit. */
int64_t idem__time_ns(int64_t ms);

#endif
