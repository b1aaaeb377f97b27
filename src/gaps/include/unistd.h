/* <unistd.h> with closefrom() if the C library lacks it. */
#pragma GCC system_header
#include_next <unistd.h>

#if defined(IDEM_NO_CLOSEFROM) && !defined(IDEM_GAPS_CLOSEFROM)
#define IDEM_GAPS_CLOSEFROM

/* Closes all descriptors from @lowest on. */
void closefrom(int lowest);

#endif
