/* <unistd.h> with closefrom(), where the C library does not have it. */
#pragma GCC system_header
#include_next <unistd.h>

#if defined(IDEM_NO_CLOSEFROM) && !defined(IDEM_GAPS_CLOSEFROM)
#define IDEM_GAPS_CLOSEFROM

/* Closes all descriptors from @lowest on. */
void closefrom(int lowest);

#endif
