/* A limit on the size of files makes a write fail, and ends nobody. */
#include "process/filesize.h"

#include <stdbool.h>

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
