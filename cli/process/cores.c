/* No crash of ours writes keys, results and tokens into a file. */
#include "process/cores.h"

#include <stdbool.h>
#include <sys/resource.h>

static struct rlimit was;
static bool off;

void cli_cores_off(void)
{
    struct rlimit none;

    if (getrlimit(RLIMIT_CORE, &was) == 0) {
        none = was;
        none.rlim_cur = 0;
        off = setrlimit(RLIMIT_CORE, &none) == 0;
    }
}

void cli_cores_back(void)
{
    if (off) {
        (void)setrlimit(RLIMIT_CORE, &was);
    }
}
