/* The first process of a container: signals end it as they end any other. */
#include "process/first.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static void end(int signo)
{
    _exit(128 + signo);
}

void cli_first_process(void)
{
    static const int fatal[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    struct sigaction action;
    size_t i;

    if (getpid() != 1) {
        return;
    }
    for (i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
        if (sigaction(fatal[i], NULL, &action) == 0 &&
            action.sa_handler == SIG_DFL) {
            action.sa_handler = end;
            (void)sigaction(fatal[i], &action, NULL);
        }
    }
}
