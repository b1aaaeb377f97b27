/* One posix_spawn(), with all that it is told. */
#include "process/spawn.h"

#include "process/limits.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

int cli_spawn(const char *path, char **argv, char **env, int input,
              pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t usual;
    sigset_t none;
    int rc;

    cli_filesize_signals(&usual);
    (void)sigemptyset(&none);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP |
                                              POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawnattr_setsigdefault(&attr, &usual);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawn_file_actions_init(&actions);
    if (input >= 0) {
        (void)posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    } else {
        (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO,
                                               "/dev/null", O_RDONLY, 0);
    }
    (void)posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO,
                                           STDOUT_FILENO);
    rc = posix_spawn(ret_pid, path, &actions, &attr, argv, env);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attr);
    return rc;
}
