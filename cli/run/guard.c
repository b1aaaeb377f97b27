/* The guard: ends what a supervisor that was killed has left. */
#include "process/descriptors.h"
#include "process/self.h"
#include "run/channel.h"
#include "run/descendants.h"
#include "run/run.h"
#include "run/supervisor.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Nobody waits for the streams of the guard, and the channel is all it needs. */
static int let_go_of_descriptors(int channel)
{
    int kept = STDERR_FILENO + 1;

    if (channel != kept) {
        (void)dup2(channel, kept);
    }
    closefrom(kept + 1);
    (void)close(STDIN_FILENO);
    (void)close(STDOUT_FILENO);
    (void)close(STDERR_FILENO);
    cli_open_std_fds();
    return kept;
}

static bool was_killed(pid_t supervisor)
{
    int how = 0;

    while (waitpid(supervisor, &how, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(how);
}

/* The runner reads the end of the channel only once we are gone too: a guard that
 * is killed says nothing, and then nothing is proved. */
static void end_the_work(int channel)
{
    struct supervisor_news news = {.kind = SUPERVISOR_SURVIVED};

    if (!descendants_end(/* group= */ 0, SUPERVISOR_KILL_MS, &news.survivor)) {
        (void)channel_send(channel, &news, sizeof(news), &channel_no_fds);
    }
    news.kind = SUPERVISOR_LOST;
    (void)channel_send(channel, &news, sizeof(news), &channel_no_fds);
}

void guard(const struct run *run, int channel)
{
    bool adopts = descendants_adopt() == 0;
    pid_t supervisor = adopts ? fork() : -1;

    if (supervisor == 0) {
        supervisor_main(run, channel);
    }
    if (supervisor < 0) {
        _exit(EXIT_FAILURE);
    }
    (void)setpgid(0, 0); /* A signal that ends the group of the runner spares
                            us. */
    self_set_name("idem-guard");
    channel = let_go_of_descriptors(channel);
    if (was_killed(supervisor)) {
        end_the_work(channel);
    }
    _exit(0);
}
