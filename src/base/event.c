/* A descriptor that threads make readable. */
#include "base/event.h"

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int idem__event_open(void)
{
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

/* It fails only where the count would overflow, and then it is readable. */
void idem__event_set(int event)
{
    const uint64_t one = 1;

    (void)!write(event, &one, sizeof(one));
}

/* It fails only where the count is 0 already. */
void idem__event_clear(int event)
{
    uint64_t count;

    (void)!read(event, &count, sizeof(count));
}
