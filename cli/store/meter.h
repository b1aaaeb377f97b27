/* meter.h: the meter of this host. */
#ifndef IDEM_CLI_STORE_METER_H
#define IDEM_CLI_STORE_METER_H

#include <idem/metrics.h>

/* The meter of $IDEM_METER; NULL where none is asked for, or it cannot be used,
 * which is reported once and does not stop the work. The process keeps it. */
struct idem_meter *cli_meter(void);

/* Has a store that is about to be opened observed by it. */
void cli_metered(struct idem_open_options *options);

#endif
