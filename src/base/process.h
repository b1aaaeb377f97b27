/* Which process this is, at the price of a load. */
#ifndef IDEM_BASE_PROCESS_H
#define IDEM_BASE_PROCESS_H

/* getpid(), without a system call but for the first in each process. */
long idem__process(void);

#endif
