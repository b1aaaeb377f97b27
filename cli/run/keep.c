/* The keeper: parent of the command, and what ends it in time. */
#include "run/keep.h"

#include "crash.h"
#include "run/environment.h"
#include "run/io.h"
#include "run/keeper.h"
#include "run/kin.h"
#include "run/obituary.h"
#include "run/pty.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEFT_MS 200        /* For descendants to end by themselves. */
#define KILL_AGAIN_MS 10   /* Between two rounds of SIGKILL. */
#define KILL_LATER_MS 1000 /* Where nobody can know yet if one is left. */

enum {
    FD_CHANNEL = 3, /* The only one of the runner's that is kept. */
};

/* From the order to start until nobody is left. All times by io_now_ms();
 * KEEPER_NEVER where there is none. */
struct keep {
    struct run own;            /* With the claim that was last asked for. */
    const struct run *run;     /* That. */
    struct keeper_claim claim; /* The bytes that its request points to. */
    bool asked;    /* The store was asked, and no attempt is known of it. */
    bool has_task; /* An attempt is known of; start.task. */
    struct keeper_order start;
    int channel;
    int children; /* Readable when one of them changed. */
    int timer;
    pid_t command;
    bool ended;     /* The command. */
    bool released;  /* The runner does not need the number of its group. */
    bool adopts;    /* Children of a parent that ends become ours. */
    bool alone;     /* Nobody is left: waitid() has proved it. */
    bool survived;  /* Some are, and cannot be ended: nothing is proved. */
    bool left;      /* Some had to be stopped after its end. */
    bool orphaned;  /* The runner is dead. */
    bool dismissed; /* It wants nothing more. */
    struct child_end end;
    struct kin_survivor survivor; /* If survived. */

    enum keeper_why stopping; /* All got SIGTERM, for the first reason. */
    int64_t kill_at_ms;       /* By the lease. */
    int64_t stop_kill_at_ms;  /* By anything else. */
    int64_t max_end_ms;       /* Of --max-time. */
    int64_t left_at_ms;   /* When the descendants that remained are stopped. */
    int64_t killed_at_ms; /* Since when SIGKILL is sent. */
    int64_t kill_next_ms;
};

static int64_t soonest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t later(int64_t ms, int64_t by_ms)
{
    return ms > KEEPER_NEVER - by_ms ? KEEPER_NEVER : ms + by_ms;
}

/* When the lease's SIGTERM is due. */
static int64_t warn_at_ms(const struct keep *keep)
{
    return keep->kill_at_ms == KEEPER_NEVER
               ? KEEPER_NEVER
               : keep->kill_at_ms - keep->start.grace_ms;
}

/* The command has ended, and stays unreaped until the runner knows. As long as
 * it does, waitid() cannot tell whether it is the only child that is left. */
static bool is_held(const struct keep *keep)
{
    return keep->ended && !keep->released && !keep->orphaned;
}

static pid_t group_of(const struct keep *keep)
{
    return !keep->ended || is_held(keep) ? keep->command : 0;
}

/* There is nothing more to end, or no way to. */
static bool is_settled(const struct keep *keep)
{
    return keep->alone || keep->survived;
}

/* A runner that cannot be told must not wait for it: to it we are dead. */
static void tell(const struct keep *keep, const struct keeper_news *news)
{
    if (channel_send(keep->channel, news, sizeof(*news), &channel_no_fds) !=
        0) {
        channel_fall_silent(keep->channel);
    }
}

/* ---- The start --------------------------------------------------------- */

static enum child_start start_command(struct keep *keep,
                                      const struct channel_fds *fds)
{
    const struct run *run = keep->run;
    struct child_plan plan = {
        .argv = run->argv,
        .input = fds->fd[KEEPER_INPUT],
        .out = fds->fd[KEEPER_OUT],
        .err = fds->fd[KEEPER_ERR],
        .terminal = fds->fd[KEEPER_TERMINAL],
        .leads = run->options->pty,
    };
    const struct child_task *task = keep->has_task ? &keep->start.task : NULL;
    struct environment environment;
    enum child_start how;
    int why;

    if (environment_init(&environment, &run->asked.request, task,
                         run->options->store) != 0) {
        errno = ENOMEM;
        return CHILD_NO_MEANS;
    }
    plan.env = environment.list;
    how = child_start(&plan, &keep->command);
    why = errno;
    environment_finish(&environment);
    errno = why;
    return how;
}

/* The reader of our descriptors waits for the command alone. */
static void let_go_of_descriptors(struct keep *keep)
{
    if (keep->channel != FD_CHANNEL) {
        (void)dup3(keep->channel, FD_CHANNEL, O_CLOEXEC);
        keep->channel = FD_CHANNEL;
    }
    closefrom(FD_CHANNEL + 1);
    (void)close(STDIN_FILENO);
    (void)close(STDOUT_FILENO);
    (void)close(STDERR_FILENO);
    cli_open_std_fds();
}

static int watch_children(struct keep *keep)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    keep->children = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    keep->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return keep->children < 0 || keep->timer < 0 ? -1 : 0;
}

static bool is_runner_there(const struct keep *keep)
{
    struct pollfd end = {.fd = keep->channel};

    return poll(&end, 1, 0) == 0;
}

/* --max-time, of the attempt that begins @now_ms. */
static void limit_time(struct keep *keep, int64_t now_ms)
{
    if (keep->run->options->max_time_ms > 0) {
        keep->max_end_ms = later(now_ms, keep->run->options->max_time_ms);
    }
}

static enum child_start start(struct keep *keep, const struct channel_fds *fds)
{
    int64_t now_ms = io_now_ms();
    enum child_start how;

    if (!is_runner_there(keep)) {
        keep->orphaned = true;
        return CHILD_TOO_LATE;
    }
    if (now_ms >= keep->start.kill_at_ms) {
        return CHILD_TOO_LATE;
    }
    if (!keep->adopts) {
        errno = ENOSYS; /* UNTESTED: a filter of system calls must be there. */
        return CHILD_NO_MEANS;
    }
    CLI_CRASH_POINT("keep/start/ordered");
    how = start_command(keep, fds);
    CLI_CRASH_POINT("keep/start/started");
    if (how != CHILD_STARTED) {
        keep->command = 0;
    } else if (keep->has_task) {
        limit_time(keep, now_ms);
    }
    return how;
}

/* ---- Stopping ---------------------------------------------------------- */

/* The first reason counts. True if this is it. */
static bool give_reason(struct keep *keep, enum keeper_why why)
{
    struct keeper_news news = {.kind = KEEPER_STOPPING, .why = why};

    if (keep->stopping != KEEPER_WHY_NOT) {
        return false;
    }
    keep->stopping = why;
    keep->end.cut_short = !keep->ended;
    tell(keep, &news);
    return true;
}

static bool is_kill_due(const struct keep *keep)
{
    return io_now_ms() >= soonest(keep->kill_at_ms, keep->stop_kill_at_ms);
}

/* A stopped process must be continued to see SIGTERM; but not where it is too
 * late for that. */
static void stop(struct keep *keep, enum keeper_why why)
{
    if (give_reason(keep, why) && !is_kill_due(keep)) {
        kin_signal(SIGTERM, group_of(keep));
        kin_signal(SIGCONT, group_of(keep));
        CLI_CRASH_POINT("keep/told-to-end");
    }
}

static void stop_within(struct keep *keep, enum keeper_why why,
                        int64_t grace_ms)
{
    keep->stop_kill_at_ms =
        soonest(keep->stop_kill_at_ms, later(io_now_ms(), grace_ms));
    stop(keep, why);
}

/* They are left to themselves once nobody waits for them. */
static bool may_be_left(const struct keep *keep)
{
    return keep->ended && keep->run->options->allow_background;
}

/* A keeper that cannot prove that the work is over must not let it be
 * recorded. */
static void give_up(struct keep *keep)
{
    struct keeper_news news = {.kind = KEEPER_SURVIVED};

    keep->survived = true;
    kin_find_survivor(&news.survivor);
    keep->survivor = news.survivor;
    tell(keep, &news);
}

/* A keeper that was asleep past the end of the lease gets no time to do
 * anything more. */
static void kill_all(struct keep *keep, int64_t now_ms)
{
    if (now_ms < keep->kill_next_ms) {
        return;
    }
    (void)give_reason(keep, KEEPER_WHY_LEASE);
    if (keep->killed_at_ms == KEEPER_NEVER) {
        keep->killed_at_ms = now_ms;
    }
    kin_signal(SIGKILL, group_of(keep));
    CLI_CRASH_POINT("keep/killed");
    keep->kill_next_ms = now_ms + KILL_AGAIN_MS;
    if (now_ms < keep->killed_at_ms + KEEPER_KILL_MS) {
        return;
    }
    if (is_held(keep)) {
        keep->kill_next_ms = now_ms + KILL_LATER_MS;
    } else {
        give_up(keep);
    }
}

static void obey_clock(struct keep *keep)
{
    int64_t now_ms = io_now_ms();
    int64_t grace_ms = (int64_t)keep->run->options->kill_after_ms;

    if (is_settled(keep) || may_be_left(keep)) {
        return;
    }
    if (is_kill_due(keep)) {
        kill_all(keep, now_ms);
        return;
    }
    if (now_ms >= warn_at_ms(keep)) {
        stop(keep, KEEPER_WHY_LEASE);
    }
    if (!keep->ended && now_ms >= keep->max_end_ms) {
        keep->max_end_ms = KEEPER_NEVER;
        stop_within(keep, KEEPER_WHY_MAX_TIME, grace_ms);
    }
    /* A runner that waits for its store learns late of the end: until then the
     * only process may be the command itself, which nobody left. */
    if (now_ms >= keep->left_at_ms && !is_held(keep)) {
        keep->left_at_ms = KEEPER_NEVER;
        keep->left = true;
        stop_within(keep, KEEPER_WHY_LEFT, grace_ms);
    }
}

/* A wait that began before the host slept must not last longer for it: only a
 * timer on this clock counts the sleep. */
static void set_timer(struct keep *keep)
{
    struct itimerspec at = {.it_interval = {0}};
    int64_t ms = soonest(keep->kill_at_ms, keep->stop_kill_at_ms);

    if (keep->killed_at_ms != KEEPER_NEVER) {
        ms = keep->kill_next_ms;
    } else {
        if (keep->stopping == KEEPER_WHY_NOT) {
            ms = soonest(ms, warn_at_ms(keep));
        }
        ms = soonest(ms, keep->max_end_ms);
        ms = is_held(keep) ? ms : soonest(ms, keep->left_at_ms);
    }
    if (ms != KEEPER_NEVER && !is_settled(keep) && !may_be_left(keep)) {
        at.it_value.tv_sec = (time_t)(ms / 1000);
        at.it_value.tv_nsec = (long)(ms % 1000) * 1000000;
    }
    (void)timerfd_settime(keep->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* ---- What children do -------------------------------------------------- */

static void command_ended(struct keep *keep, const siginfo_t *info)
{
    struct keeper_news news = {.kind = KEEPER_ENDED};

    if (info->si_code == CLD_EXITED) {
        keep->end.exit_status = info->si_status;
    } else {
        keep->end.signal = info->si_status;
    }
    keep->ended = true;
    keep->end.at_ms = io_now_ms();
    keep->left_at_ms = later(keep->end.at_ms, LEFT_MS);
    news.end = keep->end;
    CLI_CRASH_POINT("keep/ended/tells");
    tell(keep, &news);
    CLI_CRASH_POINT("keep/ended/told");
}

/* It stays unreaped until the runner knows of its end, so that the number of its
 * group stays its own. */
static void look_at_command(struct keep *keep)
{
    siginfo_t info = {0};
    id_t id = (id_t)keep->command;

    if (waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid != 0) {
        command_ended(keep, &info);
    } else if (waitid(P_PID, id, &info, WSTOPPED | WNOHANG) == 0 &&
               info.si_pid != 0) {
        struct keeper_news news = {
            .kind = KEEPER_STOPPED,
            .number = info.si_status,
        };

        tell(keep, &news);
    }
}

static void look_at_children(struct keep *keep)
{
    struct keeper_news news = {.kind = KEEPER_ALONE, .number = keep->left};

    if (is_settled(keep)) {
        return;
    }
    if (!keep->ended) {
        look_at_command(keep);
    }
    if (kin_reap(group_of(keep))) {
        keep->alone = true;
        tell(keep, &news);
    }
}

/* ---- What the runner does ---------------------------------------------- */

static void orphan(struct keep *keep)
{
    keep->orphaned = true;
    CLI_CRASH_POINT("keep/orphaned");
    if (keep->start.sets_terminal) {
        pty_restore(&keep->start.before);
    }
    if (!may_be_left(keep)) {
        stop_within(keep, KEEPER_WHY_ORPHANED,
                    (int64_t)keep->run->options->kill_after_ms);
    }
}

static void note_claim(struct keep *keep, const struct keeper_order *order)
{
    struct idem_request *request = &keep->own.asked.request;
    struct keeper_claim *claim = &keep->claim;

    *claim = order->claim;
    request->key = idem_bytes(claim->key, claim->key_len);
    request->fingerprint =
        idem_bytes(claim->fingerprint,
                   claim->has_fingerprint ? sizeof(claim->fingerprint) : 0);
    memcpy(keep->own.nonce.bytes, claim->nonce, sizeof(claim->nonce));
    keep->asked = true;
}

/* Where everything is told to end already, that stays so. */
static void begin_task(struct keep *keep, const struct keeper_order *order)
{
    keep->start.task = order->task;
    keep->start.policy = order->policy;
    keep->start.grace_ms = order->grace_ms;
    keep->asked = false;
    keep->has_task = true;
    if (keep->stopping == KEEPER_WHY_NOT) {
        keep->kill_at_ms = order->kill_at_ms;
        limit_time(keep, io_now_ms());
    }
}

static void end_task(struct keep *keep)
{
    explicit_bzero(&keep->start.task, sizeof(keep->start.task));
    keep->asked = false;
    keep->has_task = false;
    keep->max_end_ms = KEEPER_NEVER;
    if (keep->stopping == KEEPER_WHY_NOT) {
        keep->kill_at_ms = KEEPER_NEVER;
    }
}

static void obey(struct keep *keep, const struct keeper_order *order)
{
    switch (order->kind) {
    case KEEPER_ASK:
        note_claim(keep, order);
        break;
    case KEEPER_START:
        break;
    case KEEPER_TASK:
        begin_task(keep, order);
        break;
    case KEEPER_IDLE:
        end_task(keep);
        break;
    case KEEPER_LEASE:
        if (keep->stopping != KEEPER_WHY_LEASE) {
            keep->kill_at_ms = order->kill_at_ms;
        }
        break;
    case KEEPER_STOP:
        stop_within(keep, KEEPER_WHY_ORDER, keep->start.grace_ms);
        break;
    case KEEPER_SEEN:
        keep->released = true;
        break;
    case KEEPER_DONE:
        keep->dismissed = true;
        break;
    }
}

static void listen(struct keep *keep)
{
    struct keeper_order order;
    int heard = 0;

    while (!keep->orphaned && !keep->dismissed &&
           (heard = channel_receive(keep->channel, &order, sizeof(order),
                                    /* wait= */ false, NULL)) == 1) {
        obey(keep, &order);
    }
    if (heard < 0) {
        orphan(keep);
    }
}

static void turn(struct keep *keep)
{
    struct signalfd_siginfo info;
    uint64_t expired;
    struct pollfd ready[] = {
        {.fd = keep->orphaned ? -1 : keep->channel, .events = POLLIN},
        {.fd = keep->children, .events = POLLIN},
        {.fd = keep->timer, .events = POLLIN},
    };

    set_timer(keep);
    (void)poll(ready, 3, -1);
    while (read(keep->children, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
    }
    (void)!read(keep->timer, &expired, sizeof(expired));

    /* A process that had ended was not stopped; and who was seen can be
     * reaped. */
    look_at_children(keep);
    obey_clock(keep);
    listen(keep);
    look_at_children(keep);
}

static bool is_over(const struct keep *keep)
{
    return keep->dismissed ||
           (keep->orphaned && (is_settled(keep) || may_be_left(keep)));
}

/* The lease ends by itself: the store is told nothing. */
static void say_survived(const struct keep *keep)
{
    char what[KIN_TEXT_MAX];

    kin_describe(&keep->survivor, what, sizeof(what));
    cli_say("the runner died, and its command could not be ended: %s; the "
            "lease of the key ends by itself",
            what);
}

/* Nobody reads our stderr; but there may be a syslog. */
static void say_what_became(const struct keep *keep)
{
    const struct child_end *end = &keep->end;
    char note[128] = "the runner died; its command was stopped";

    if (keep->ended && !end->cut_short) {
        (void)
            snprintf(note, sizeof(note),
                     end->signal != 0
                         ? "the runner died after its command died of signal %d"
                         : "the runner died after its command ended with "
                           "status %d",
                     end->signal != 0 ? end->signal : end->exit_status);
    }
    CLI_CRASH_POINT("keep/alone");
    cli_say("%s", note);
    if (keep->has_task) {
        obituary_of_work(keep->run, &keep->start, end, note);
    } else if (keep->asked) {
        obituary_of_claim(keep->run);
    }
}

/* ---- All of it --------------------------------------------------------- */

static void begin(struct keep *keep, const struct keeper_order *order,
                  const struct channel_fds *fds)
{
    struct keeper_news news = {.kind = KEEPER_REFUSED};

    keep->start = *order;
    keep->has_task = !order->idle;
    keep->asked = false;
    keep->kill_at_ms = order->kill_at_ms;
    keep->stop_kill_at_ms = KEEPER_NEVER;
    keep->max_end_ms = KEEPER_NEVER;
    keep->left_at_ms = KEEPER_NEVER;
    keep->killed_at_ms = KEEPER_NEVER;
    news.how = start(keep, fds);
    news.number = errno;
    let_go_of_descriptors(keep);
    CLI_CRASH_POINT("keep/start/tells");
    if (news.how == CHILD_STARTED) {
        news.kind = KEEPER_STARTED;
        news.number = keep->command;
    }
    tell(keep, &news);
}

/* The runner says itself what came of a start that was refused. */
static void await_dismissal(const struct keep *keep)
{
    struct keeper_order order;

    if ((keep->orphaned || channel_receive(keep->channel, &order, sizeof(order),
                                           /* wait= */ true, NULL) < 0) &&
        keep->has_task) {
        obituary_of_work(keep->run, &keep->start, /* end= */ NULL, NULL);
    }
}

static void see_through(struct keep *keep)
{
    if (watch_children(keep) != 0) {
        /* UNTESTED: the kernel must be out of memory. The runner finds us dead,
         * and ends what is left. */
        (void)kin_end(keep->command, KEEPER_KILL_MS, &keep->survivor);
        return;
    }
    while (!is_over(keep)) {
        turn(keep);
    }
    if (keep->dismissed) {
        return;
    }
    if (keep->survived) {
        say_survived(keep);
    } else {
        say_what_became(keep);
    }
}

static void serve(const struct run *run, int channel)
{
    struct keep keep = {
        .own = *run,
        .run = &keep.own,
        .channel = channel,
        .adopts = kin_adopt() == 0,
    };
    struct keeper_order order;
    struct channel_fds fds;
    int heard;

    do {
        heard = channel_receive(channel, &order, sizeof(order),
                                /* wait= */ true, &fds);
        if (heard > 0 && order.kind == KEEPER_ASK) {
            note_claim(&keep, &order);
        }
        CLI_CRASH_POINT("keep/heard");
    } while (heard > 0 && order.kind == KEEPER_ASK);
    if (heard < 0 && keep.asked) {
        let_go_of_descriptors(&keep);
        obituary_of_claim(keep.run);
    }
    if (heard < 0 || order.kind != KEEPER_START) {
        return;
    }
    begin(&keep, &order, &fds);
    if (keep.command == 0) {
        await_dismissal(&keep);
    } else {
        see_through(&keep);
    }
}

void keep(const struct run *run, int channel)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};

    CLI_CRASH_POINT("keep/begun");
    (void)sigaction(SIGCHLD, &usual, NULL); /* Ignored, no status reached us. */
    (void)setpgid(0, 0); /* A signal that ends the group of the runner spares
                            us. */
    (void)prctl(PR_SET_NAME, "idem-keeper");
    serve(run, channel);
    _exit(0);
}
