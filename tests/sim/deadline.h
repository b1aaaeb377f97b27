/* When an operation of a store that is reached by requests has to have an end: as in
 * src/store/remote/flights.c. */
#ifndef SIM_DEADLINE_H
#define SIM_DEADLINE_H

#include "world.h"

/* What CLOCK_MONOTONIC shows @f's client. */
int64_t deadline_mono_ms(const struct world *w, const struct flight *f);

/* On that clock: the end of the operation, and of a request that is sent now. */
int64_t deadline_of(const struct world *w, const struct flight *f);
int64_t deadline_of_try(const struct world *w, const struct flight *f);

/* When that clock shows @mono_ms: true time, and not before the next moment. */
int64_t deadline_when(const struct world *w, const struct flight *f,
                      int64_t mono_ms);

#endif
