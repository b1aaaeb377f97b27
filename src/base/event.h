/* A descriptor that threads make readable: eventfd(2). */
#ifndef IDEM_BASE_EVENT_H
#define IDEM_BASE_EVENT_H

/* A descriptor that is not readable yet, never blocks and is closed by exec. The
 * caller closes it. -1: descriptors or memory ran out. */
int idem__event_open(void);

/* Makes it readable, until somebody clears it. From any thread. */
void idem__event_set(int event);

/* Makes it unreadable, however often it was set. */
void idem__event_clear(int event);

#endif
