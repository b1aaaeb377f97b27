/* The supervisor: the parent of the command, which obeys the runner and sees every
 * process of the work end.
 *
 * Three facts make it safe to record an end after a runner died: the command runs only
 * if the supervisor started it, so a runner that died before has run nothing; the
 * supervisor adopts all descendants, so it knows when the last one has ended; and it
 * writes under the fence of the attempt, so a successor is never disturbed. */
#include "base/crash.h"
#include "process/descriptors.h"
#include "process/host.h"
#include "process/self.h"
#include "run/channel.h"
#include "run/child.h"
#include "run/descendants.h"
#include "run/run.h"
#include "run/supervisor.h"
#include "text/error.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEFT_MS 200 /* For descendants to end by themselves. */

enum {
    FD_CHANNEL = 3, /* The only descriptor that we keep. */
};

/* ---- The start --------------------------------------------------------- */

static enum child_start start_command(struct supervision *sup,
                                      const struct channel_fds *fds)
{
    const struct run *run = sup->run;
    struct child_plan plan = {
        .argv = run->argv,
        .input = fds->fd[SUPERVISOR_INPUT],
        .out = fds->fd[SUPERVISOR_OUT],
        .err = fds->fd[SUPERVISOR_ERR],
        .terminal = fds->fd[SUPERVISOR_TERMINAL],
    };

    if (child_environment(&run->asked.request, windows_name_of(run),
                          &sup->start.task, run->options->store) != 0) {
        errno = ENOMEM;
        return CHILD_NO_MEANS;
    }
    return child_start(&plan, &sup->command);
}

/* Close what we inherited: a process that reads from the command must see the end of the
 * stream when the command ends, not when we do. */
static void let_go_of_descriptors(struct supervision *sup)
{
    if (sup->channel != FD_CHANNEL) {
        (void)dup3(sup->channel, FD_CHANNEL, O_CLOEXEC);
        sup->channel = FD_CHANNEL;
    }
    closefrom(FD_CHANNEL + 1);
    (void)close(STDIN_FILENO);
    (void)close(STDOUT_FILENO);
    (void)close(STDERR_FILENO);
    cli_open_std_fds();
}

static int watch_children(struct supervision *sup)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    sup->children = signal_fd_open(&set);
    sup->timer = boot_timer_open();
    return sup->children < 0 || sup->timer < 0 ? -1 : 0;
}

static bool is_runner_there(const struct supervision *sup)
{
    struct pollfd end = {.fd = sup->channel};

    /* poll() reports a hangup even if no event is requested. */
    return poll(&end, 1, 0) == 0;
}

/* --max-time, of the attempt that begins @now_ms. */
static void limit_time(struct supervision *sup, int64_t now_ms)
{
    if (sup->run->options->max_time_ms > 0) {
        sup->max_end_ms =
            supervision_later(now_ms, sup->run->options->max_time_ms);
    }
}

static enum child_start start(struct supervision *sup,
                              const struct channel_fds *fds)
{
    int64_t now_ms = io_now_ms();
    enum child_start how;

    /* The runner died after it gave the order: nobody would own the work. */
    if (!is_runner_there(sup)) {
        sup->orphaned = true;
        return CHILD_TOO_LATE;
    }
    /* The lease ran out while the order was on its way, in a suspended host say: another
     * runner may have taken over. */
    if (now_ms >= sup->start.kill_at_ms) {
        return CHILD_TOO_LATE;
    }
    /* Without adoption a descendant could outlive us unseen, and nothing could be
     * proved. */
    if (!sup->adopts) {
        errno = ENOSYS; /* UNTESTED: a filter of system calls must be there. */
        return CHILD_NO_MEANS;
    }
    IDEM__CRASH_POINT("supervisor/start/ordered");
    /* From here on the work may have begun, whatever becomes of us: the runner takes a
     * supervisor that dies now for one that has started it (await_start() in launch.c). */
    how = start_command(sup, fds);
    IDEM__CRASH_POINT("supervisor/start/started");
    if (how != CHILD_STARTED) {
        sup->command = 0;
    } else {
        limit_time(sup, now_ms);
    }
    return how;
}

/* ---- What children do -------------------------------------------------- */

static void command_ended(struct supervision *sup, const siginfo_t *info)
{
    struct supervisor_news news = {.kind = SUPERVISOR_ENDED};

    if (info->si_code == CLD_EXITED) {
        sup->end.exit_status = info->si_status;
    } else {
        sup->end.signal = info->si_status;
    }
    sup->ended = true;
    sup->end.at_ms = io_now_ms();
    /* Descendants get a moment to end by themselves. */
    sup->left_at_ms = supervision_later(sup->end.at_ms, LEFT_MS);
    news.end = sup->end;
    IDEM__CRASH_POINT("supervisor/ended/tells");
    supervision_tell(sup, &news);
    IDEM__CRASH_POINT("supervisor/ended/told");
}

/* The command stays unreaped until the runner knows of its end, so that no other
 * process can get the number of its group. */
static void look_at_command(struct supervision *sup)
{
    siginfo_t info = {0};
    id_t id = (id_t)sup->command;

    /* WNOWAIT reads how the command ended and leaves it unreaped. */
    if (waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid != 0) {
        command_ended(sup, &info);
    } else if (waitid(P_PID, id, &info, WSTOPPED | WNOHANG) == 0 &&
               info.si_pid != 0) {
        struct supervisor_news news = {
            .kind = SUPERVISOR_STOPPED,
            .number = info.si_status,
        };

        supervision_tell(sup, &news);
    }
}

static void look_at_children(struct supervision *sup)
{
    struct supervisor_news news = {.kind = SUPERVISOR_ALONE,
                                   .number = sup->left};

    if (supervision_is_settled(sup)) {
        return;
    }
    /* The command first: it must not be reaped among the others, its status unread. */
    if (!sup->ended) {
        look_at_command(sup);
    }
    /* Only this proves that the work is over; the runner records nothing before it hears
     * so. */
    if (descendants_reap(supervision_group(sup))) {
        sup->alone = true;
        supervision_tell(sup, &news);
    }
}

/* ---- What the runner does ---------------------------------------------- */

/* The runner died. Work must not go on without an owner that renews its lease, so it is
 * stopped; but the command may have ended, and be allowed to leave processes. */
static void orphan(struct supervision *sup)
{
    sup->orphaned = true;
    IDEM__CRASH_POINT("supervisor/orphaned");
    if (!supervision_may_be_left(sup)) {
        supervision_stop_within(sup, SUPERVISOR_WHY_ORPHANED,
                                (int64_t)sup->run->options->kill_after_ms);
    }
}

/* Keeps the nonce of the claim that the runner is about to submit: if the runner dies
 * before it hears the answer, only that nonce tells whose claim is on record. */
static void note_claim(struct supervision *sup,
                       const struct supervisor_order *order)
{
    struct idem_request *request = &sup->own.asked.request;
    struct supervisor_claim *claim = &sup->claim;

    *claim = order->claim;
    request->key = idem_bytes(claim->key, claim->key_len);
    request->fingerprint =
        idem_bytes(claim->fingerprint,
                   claim->has_fingerprint ? sizeof(claim->fingerprint) : 0);
    memcpy(sup->own.nonce.bytes, claim->nonce, sizeof(claim->nonce));
    sup->asked = true;
}

static void obey(struct supervision *sup, const struct supervisor_order *order)
{
    switch (order->kind) {
    case SUPERVISOR_ASK:
    case SUPERVISOR_START:
        break; /* They come before the command runs; see serve(). */
    case SUPERVISOR_LEASE:
        /* A renewal comes too late once the lease has begun to stop the command. */
        if (sup->stopping != SUPERVISOR_WHY_LEASE) {
            sup->kill_at_ms = order->kill_at_ms;
        }
        break;
    case SUPERVISOR_STOP:
        supervision_stop_within(sup, SUPERVISOR_WHY_ORDER, sup->start.grace_ms);
        break;
    case SUPERVISOR_SEEN: /* The runner knows of the end: the command may be reaped. */
        sup->released = true;
        break;
    case SUPERVISOR_DONE:
        sup->dismissed = true;
        break;
    }
}

static void listen(struct supervision *sup)
{
    struct supervisor_order order;
    int heard = 0;

    while (!sup->orphaned && !sup->dismissed &&
           (heard = channel_receive(sup->channel, &order, sizeof(order),
                                    /* wait= */ false, NULL)) == 1) {
        obey(sup, &order);
    }
    /* All orders that the runner sent before it died have been obeyed by now. If DONE was
     * among them, the runner had recorded the end. */
    if (heard < 0) {
        orphan(sup);
    }
}

static void turn(struct supervision *sup)
{
    struct pollfd ready[] = {
        {.fd = sup->orphaned ? -1 : sup->channel, .events = POLLIN},
        {.fd = sup->children, .events = POLLIN},
        {.fd = sup->timer, .events = POLLIN},
    };

    supervision_set_timer(sup);
    (void)poll(ready, 3, -1);
    while (signal_fd_next(sup->children) != 0) {
    }
    boot_timer_take(sup->timer);

    /* Look at the children before the clock: a command that ended in time must not be
     * reported as stopped. Look again after the orders: SEEN allows us to reap. */
    look_at_children(sup);
    supervision_obey_clock(sup);
    listen(sup);
    look_at_children(sup);
}

static bool is_over(const struct supervision *sup)
{
    return sup->dismissed || (sup->orphaned && (supervision_is_settled(sup) ||
                                                supervision_may_be_left(sup)));
}

/* A process of the work is still alive, so nothing may be recorded: a release or an
 * expiry would let another runner start beside it. The lease ends by itself. */
static void say_survived(const struct supervision *sup)
{
    char what[SURVIVOR_TEXT_MAX];

    descendants_describe(&sup->survivor, what, sizeof(what));
    cli_say(
        "the runner died, and its command could not be ended: %s; the key stays claimed until its lease ends",
        what);
}

/* On stderr too, which systemd or a container may keep. */
static void say_what_became(const struct supervision *sup)
{
    const struct child_end *end = &sup->end;
    char note[128] = "the runner died; its command was stopped";

    if (sup->ended && !end->cut_short) {
        (void)
            snprintf(note, sizeof(note),
                     end->signal != 0
                         ? "the runner died after its command died of signal %d"
                         : "the runner died after its command ended with "
                           "status %d",
                     end->signal != 0 ? end->signal : end->exit_status);
    }
    IDEM__CRASH_POINT("supervisor/alone");
    cli_say("%s", note);
    runner_death_of_work(sup->run, &sup->start, end, note);
}

/* ---- All of it --------------------------------------------------------- */

static void begin(struct supervision *sup, const struct supervisor_order *order,
                  const struct channel_fds *fds)
{
    struct supervisor_news news = {.kind = SUPERVISOR_REFUSED};

    sup->start = *order;
    sup->kill_at_ms = order->kill_at_ms;
    sup->stop_kill_at_ms = SUPERVISOR_NEVER;
    sup->max_end_ms = SUPERVISOR_NEVER;
    sup->left_at_ms = SUPERVISOR_NEVER;
    sup->killed_at_ms = SUPERVISOR_NEVER;
    /* The command is started first, because it inherits those of our streams that the order
     * does not replace. */
    news.how = start(sup, fds);
    news.number = errno;
    let_go_of_descriptors(sup);
    IDEM__CRASH_POINT("supervisor/start/tells");
    if (news.how == CHILD_STARTED) {
        news.kind = SUPERVISOR_STARTED;
        news.number = sup->command;
    }
    supervision_tell(sup, &news);
}

/* The runner itself records a start that was refused; we do so only if it dies. */
static void await_dismissal(const struct supervision *sup)
{
    struct supervisor_order order;

    /* Any order, in effect DONE, says that the runner has recorded it. A closed channel
     * says that it cannot. */
    if (sup->orphaned || channel_receive(sup->channel, &order, sizeof(order),
                                         /* wait= */ true, NULL) < 0) {
        runner_death_of_work(sup->run, &sup->start, /* end= */ NULL, NULL);
    }
}

static void see_through(struct supervision *sup)
{
    if (watch_children(sup) != 0) {
        /* UNTESTED: the kernel must be out of memory. The runner finds us dead,
         * and ends what is left. */
        (void)descendants_end(sup->command, SUPERVISOR_KILL_MS, &sup->survivor);
        return;
    }
    while (!is_over(sup)) {
        turn(sup);
    }
    /* The runner has recorded the end itself. */
    if (sup->dismissed) {
        return;
    }
    if (sup->survived) {
        say_survived(sup);
    } else {
        say_what_became(sup);
    }
}

static void serve(const struct run *run, int channel)
{
    struct supervision sup = {
        .own = *run,
        .run = &sup.own,
        .channel = channel,
        .adopts = descendants_adopt() == 0,
    };
    struct supervisor_order order;
    struct channel_fds fds;
    int heard;

    /* The runner announces each claim, and orders a start once one has succeeded. Between
     * the two it may die with a claim on record that nobody works under. */
    do {
        heard = channel_receive(channel, &order, sizeof(order),
                                /* wait= */ true, &fds);
        if (heard > 0 && order.kind == SUPERVISOR_ASK) {
            note_claim(&sup, &order);
        }
        IDEM__CRASH_POINT("supervisor/heard");
    } while (heard > 0 && order.kind == SUPERVISOR_ASK);
    /* The runner died between its claim and its order to start: nothing was run. */
    if (heard < 0 && sup.asked) {
        let_go_of_descriptors(&sup);
        runner_death_of_claim(sup.run);
    }
    /* There is nothing to run: the runner has dismissed us, or it is dead. */
    if (heard < 0 || order.kind != SUPERVISOR_START) {
        return;
    }
    begin(&sup, &order, &fds);
    if (sup.command == 0) {
        await_dismissal(&sup);
    } else {
        see_through(&sup);
    }
}

void supervisor_main(const struct run *run, int channel)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};

    IDEM__CRASH_POINT("supervisor/begun");
    /* If SIGCHLD were ignored, the kernel would reap the command and drop its status. */
    (void)sigaction(SIGCHLD, &usual, NULL);
    /* Leave the runner's group, so that a signal that ends the group spares us. */
    (void)setpgid(0, 0);
    self_set_name("idem-supervisor");
    serve(run, channel);
    _exit(0);
}
