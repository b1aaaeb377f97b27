/* Random bytes of the kernel. */
#include "process/random.h"

#include <sys/random.h>

int cli_random(void *buf, size_t len)
{
    return getrandom(buf, len, 0) == (ssize_t)len ? 0 : -1;
}
