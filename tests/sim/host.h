/* Hosts and their clocks; what the library asks of them. */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include "world.h"

/* A new boot: another boot id, a boot clock that begins anew, and a wall clock
 * that is off by @wall_off_ms. */
void host_boot(struct world *w, struct host *host, int64_t wall_off_ms);

void host_read(const struct world *w, const struct host *host,
               struct idem_clock_reading *ret_reading);

int64_t host_boot_ms(const struct world *w, const struct host *host);

/* When the boot clock of @host will show @boot_ms: true time. */
int64_t host_when(const struct host *host, int64_t boot_ms);

/* Store time, in truth. Remote: true time; PostgreSQL: the server's clock. Embedded: by the rule that a boot
 * takes the wall clock once, is never behind what was saved, and goes on by the
 * boot clock; computed here anew, next to the library's anchor. */
int64_t truth_ms(struct world *w);

/* As much of it as expires anything: less what is in doubt. PostgreSQL: what it would be,
 * had nobody set it back, for what is over once stays so. */
int64_t truth_sure_ms(struct world *w);

/* Embedded: the library is about to look at the clock, which may end a doubt. */
void truth_look(struct world *w);

/* The hooks for a client's store. */
struct idem_host host_hooks(struct client *client);

#endif
