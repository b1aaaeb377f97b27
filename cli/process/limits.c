/* The limits of the process that it sets for itself: core files, the size of files. */
#include "process/limits.h"

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

static bool was_ignored;

void cli_filesize_no_signal(void)
{
    was_ignored = signal(SIGXFSZ, SIG_IGN) == SIG_IGN;
}

void cli_filesize_signals(sigset_t *ret_set)
{
    (void)sigemptyset(ret_set);
    if (!was_ignored) {
        (void)sigaddset(ret_set, SIGXFSZ);
    }
}
