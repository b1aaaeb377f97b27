/* The same as base/crash.h of the library, for the program. */
#ifndef IDEM_CLI_PROCESS_CRASH_H
#define IDEM_CLI_PROCESS_CRASH_H

#ifdef IDEM_CRASH_POINTS
void idem__crash_point(const char *name);
#define CLI_CRASH_POINT(name) idem__crash_point(name)
#else
#define CLI_CRASH_POINT(name) ((void)0)
#endif

#endif
