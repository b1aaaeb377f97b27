/* clock.h: what time it is. */
#ifndef IDEM_CLI_PROCESS_CLOCK_H
#define IDEM_CLI_PROCESS_CLOCK_H

#include <stdint.h>

/* This host's clock. It is for what people read; a store decides by its own. */
int64_t cli_now_ms(void);

/* Since some moment, and never set: for how long things take. */
int64_t cli_mono_ms(void);

#endif
