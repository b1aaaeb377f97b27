/* A worker whose command is kept running: from its start to its end. */
#include "consume/consume.h"
#include "consume/warm.h"
#include "process/io.h"
#include "process/self.h"
#include "request/request.h"
#include "run/channel.h"
#include "run/pty.h"
#include "run/run.h"
#include "run/supervisor.h"
#include "text/error.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* It goes by itself once its input ends, or is made to. */
static void end_command(struct warm *warm)
{
    struct idem_slice none = idem_bytes(NULL, 0);
    struct warm_answer answer;

    io_close(&warm->in.fd);
    warm_end_at(warm, io_now_ms() + warm->options.kill_after_ms);
    while (!warm_is_over(warm)) {
        warm_turn(warm);
        (void)warm_next_answer(warm, none, &answer);
    }
}

static void work_until_end(struct warm *warm)
{
    struct idem_slice none = idem_bytes(NULL, 0);
    struct warm_answer answer;
    char text[256];

    while (!warm->ending && !warm_is_over(warm)) {
        (void)warm_next_answer(warm, none, &answer);
        if (warm->has_task) {
            warm_work(warm);
            warm->has_task = false;
        } else {
            warm_turn(warm);
        }
    }
    if (warm_is_over(warm) && warm->broken[0] == '\0' &&
        !warm->consume->options->quiet) {
        warm_end_text(warm, text, sizeof(text));
        cli_say("%s; it is started again when there is a message for it", text);
    }
    end_command(warm);
}

/* Each message finds the reason; the consumer stops at the first. */
static void refuse(struct warm *warm, int status)
{
    warm->refused = status;
    while (!warm->has_task && !warm->ending) {
        warm_turn(warm);
    }
    if (warm->has_task) {
        warm_work(warm);
    }
}

/* The request of every claim but for its key: the supervisor, which may have to
 * settle one, knows the rest from now. 0 or an exit status, after saying
 * why. */
static int make_request(struct warm *warm)
{
    static char any[] = "-";

    warm->claim.key = warm->claim.fingerprint = any;
    return cli_request_init(&warm->run.asked, warm->consume->command,
                            &warm->claim,
                            /* argc= */ 0, /* argv= */ NULL);
}

static void set_options(struct warm *warm)
{
    const struct consume_options *o = warm->consume->options;
    struct run_options *r = &warm->options;
    struct cli_claim claim = CLI_CLAIM_INIT;
    const char *policy = consume_policies[o->on_expired_lease];

    claim.scope = o->scope;
    claim.lease_ms = o->lease_ms;
    claim.retention_ms = o->retention_ms;
    claim.attempts_max = o->attempts_max;
    claim.on_expired_lease =
        strcmp(cli_on_expired_lease[0], policy) == 0 ? 0 : 1;
    warm->claim = claim;
    r->store = o->store;
    r->on_failure = RUN_KEEP;
    r->capture = RUN_CAPTURE_NONE;
    r->kill_after_ms = o->kill_after_ms;
    r->max_time_ms = o->max_time_ms;
    r->journal = warm->consume->journal;
    r->verbose = o->verbose;
    r->quiet = !o->verbose;
    warm->run.options = r;
    warm->run.argv = warm->consume->argv;
    warm->run.patience = warm->consume->patience;
    warm->run.supervisor = &warm->supervisor;
}

static void init(struct warm *warm, const struct consume *consume,
                 const struct channel_fds *fds)
{
    memset(warm, 0, sizeof(*warm));
    warm->consume = consume;
    warm->channel = fds->fd[WARM_CHANNEL];
    warm->body_fd = fds->fd[WARM_BODY];
    warm->status_fd = fds->fd[WARM_STATUS];
    warm->in.fd = warm->out.fd = -1;
    warm->due_ms = INT64_MAX;
    warm->terminal.fd = -1;
    warm->watch.terminal = &warm->terminal;
    warm->watch.supervisor = &warm->supervisor;
    warm->watch.out.from = warm->watch.err.from = -1;
    warm->run.signals.fd = -1;
    pty_init(&warm->watch.pty);
    set_options(warm);
}

void warm_worker(const struct consume *consume, const struct channel_fds *fds)
{
    static struct warm warm;
    int status;

    (void)setpgid(0, 0);
    self_set_name("idem-worker");
    init(&warm, consume, fds);
    status = make_request(&warm);
    supervisor_start(&warm.supervisor, &warm.run);
    status = status != 0 ? status : warm_start(&warm);
    if (status == 0) {
        work_until_end(&warm);
    } else {
        warm.watch.alone = true;
        refuse(&warm, status);
    }
    supervisor_finish(&warm.supervisor);
    idem_close(warm.run.store);
    warm_reader_finish(&warm.out);
    free(warm.ended_id);
    (void)fflush(NULL);
    _exit(0);
}
