/* Named points at which a test can kill the process. In a shipped build they are
 * empty. */
#ifndef IDEM_BASE_CRASH_H
#define IDEM_BASE_CRASH_H

/* Only the build of tests/storm defines this, and has the function. */
#ifdef IDEM_CRASH_POINTS
void idem__crash_point(const char *name);
#define IDEM__CRASH_POINT(name) idem__crash_point(name)
#else
#define IDEM__CRASH_POINT(name) ((void)0)
#endif

#endif
