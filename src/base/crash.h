/* Named places at which a test lets the process die; nothing in what is
 * shipped. */
#ifndef IDEM_BASE_CRASH_H
#define IDEM_BASE_CRASH_H

/* The build of tests/storm alone sets it, and has the function. */
#ifdef IDEM_CRASH_POINTS
void idem__crash_point(const char *name);
#define IDEM__CRASH_POINT(name) idem__crash_point(name)
#else
#define IDEM__CRASH_POINT(name) ((void)0)
#endif

#endif
