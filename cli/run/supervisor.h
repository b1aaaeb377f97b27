/* supervisor.h: the process between the runner and the command.
 *
 *     runner ---- fork, before the store is opened ----> supervisor
 *       |  <-- channel: orders down, news up -->           |
 *       |                                                 vfork
 *     pipes of stdout, stderr <------------------------- command
 *                                                          '- descendants
 *
 * The runner asks the store, carries the output and renews the lease. The supervisor is
 * the parent of the command and, as a subreaper, of every orphan below it. It has no
 * thread, no store and no output open, so that little can keep it from its work. Two
 * duties and a rule:
 *
 * - No work goes on past the lease that it knows of, whatever became of the runner.
 *   Everything gets SIGTERM, then SIGKILL before the end.
 * - When the runner dies, which closes the channel, the supervisor stops all of the
 *   work. Then it opens the store itself and records the death, with a write under the
 *   attempt's fence like any other: every host knows of the death at once, and nobody
 *   has to guess whether a process is alive.
 *
 * - It reports that the work is over only if waitid() has proved it: as a subreaper it
 *   has a child as long as one descendant is alive. It reports a process that cannot be
 *   ended (in an uninterruptible sleep, or another user's) as a survivor. Then nobody
 *   records anything, and the lease decides.
 *
 * If the supervisor dies, the kernel kills its command (PR_SET_PDEATHSIG, which child.c
 * sets before exec), and the runner, a subreaper too, ends what is left. If both are
 * killed, the lease decides.
 *
 * A runner that had children before, because a shell became it by exec, could not tell
 * them from what a dead supervisor leaves. It puts a guard between: a subreaper whose
 * only child is the supervisor.
 *
 *     runner --> guard --> supervisor --> command
 */
#ifndef IDEM_CLI_RUN_SUPERVISOR_H
#define IDEM_CLI_RUN_SUPERVISOR_H

#include "run/channel.h"
#include "run/child.h"
#include "run/descendants.h"
#include "run/run.h"

#define SUPERVISOR_NEVER INT64_MAX
#define SUPERVISOR_KILL_MS                                                     \
    2000 /* A process that outlives SIGKILL for that long
                               survives. */

/* Down: ASK, as often as the store is asked; START; LEASE and STOP; SEEN; DONE. */
enum supervisor_order_kind {
    SUPERVISOR_ASK,   /* The store is asked for the key from now on; claim. */
    SUPERVISOR_START, /* Start the command. With its descriptors. */
    SUPERVISOR_LEASE, /* The lease ends at another time now. */
    SUPERVISOR_STOP,  /* Stop everything. */
    SUPERVISOR_SEEN, /* Of SUPERVISOR_ENDED: its process group is not needed. */
    SUPERVISOR_DONE, /* Everything is recorded: the supervisor may go. */
};

/* The place of each descriptor beside SUPERVISOR_START. */
enum supervisor_fd {
    SUPERVISOR_INPUT,
    SUPERVISOR_OUT,
    SUPERVISOR_ERR,
    SUPERVISOR_TERMINAL,
};

/* The request, as far as it is needed to settle it. */
struct supervisor_claim {
    uint8_t nonce[16];
    uint8_t fingerprint[IDEM_FINGERPRINT_LEN];
    bool has_fingerprint;
    uint16_t key_len;
    char key[IDEM_KEY_MAX];
};

struct supervisor_order {
    enum supervisor_order_kind kind;
    int64_t kill_at_ms; /* START, LEASE: by io_now_ms(), no work after it. */
    int64_t grace_ms;   /* START: from SIGTERM to that. */
    struct supervisor_claim claim; /* ASK. */
    struct child_task task;        /* START. */
    enum idem_on_expired_lease policy;
};

/* Up. */
enum supervisor_news_kind {
    SUPERVISOR_STARTED,  /* number: the process, and its group. */
    SUPERVISOR_REFUSED,  /* how, number: errno. Nothing has run. */
    SUPERVISOR_STOPPED,  /* The command, by the signal number. */
    SUPERVISOR_STOPPING, /* It was told to end, for why. */
    SUPERVISOR_ENDED,    /* The command itself; end. */
    SUPERVISOR_ALONE, /* And all of its descendants; number: some outlived the
                        command and were stopped. */
    SUPERVISOR_SURVIVED, /* Some are alive and cannot be ended: survivor. */
    SUPERVISOR_LOST, /* The guard: the supervisor was killed, and then all that it
                        left. Another SUPERVISOR_SURVIVED comes before it. */
};

enum supervisor_why {
    SUPERVISOR_WHY_NOT,
    SUPERVISOR_WHY_LEASE,    /* The lease ends. */
    SUPERVISOR_WHY_MAX_TIME, /* It took longer than it may. */
    SUPERVISOR_WHY_ORDER,    /* The runner said so. */
    SUPERVISOR_WHY_LEFT,     /* The command ended without them. */
    SUPERVISOR_WHY_ORPHANED, /* The runner is dead. */
};

struct supervisor_news {
    enum supervisor_news_kind kind;
    enum child_start how;
    enum supervisor_why why;
    int number;
    struct child_end end;
    struct descendants_survivor survivor;
};

struct supervisor {
    pid_t pid;   /* The supervisor, or its guard; 0: there is none. */
    int channel; /* -1: there is none. */
    int failed;  /* errno of the start that failed. */
    bool adopts; /* If it is killed, its orphans become our children. */
};

/* Starts one for @run, whose request is complete and whose store is not open
 * yet. Without one, supervisor->failed says why. */
void supervisor_start(struct supervisor *supervisor, const struct run *run);

/* 0, or -1: the supervisor is gone. */
int supervisor_tell(const struct supervisor *supervisor,
                    const struct supervisor_order *order,
                    const struct channel_fds *fds);

/* The same, for an order that is only its kind. */
void supervisor_say(const struct supervisor *supervisor,
                    enum supervisor_order_kind kind);

/* Sends SUPERVISOR_ASK with the request and the nonce of @run. */
void supervisor_ask(const struct supervisor *supervisor, const struct run *run);

/* 1 with @ret_news, 0: there are none; -1: it is dead. */
int supervisor_hear(const struct supervisor *supervisor, bool wait,
                    struct supervisor_news *ret_news);

/* The end is on record: dismisses the supervisor; finish also waits for its end. */
void supervisor_dismiss(struct supervisor *supervisor);
void supervisor_finish(struct supervisor *supervisor);

/* ---- The process between it and a runner that has other children ------------- */

/* With all signals blocked: starts the supervisor on @channel and waits for its end.
 * If it was killed, ends what it left and tells the runner. Ends the process. */
void guard(const struct run *run, int channel) __attribute__((noreturn));

/* ---- The supervisor itself ---------------------------------------------------- */

/* In the supervisor, with all signals blocked: obeys what comes from @channel. Ends
 * the process. */
void supervisor_main(const struct run *run, int channel)
    __attribute__((noreturn));

/* ---- The supervisor tells the store of the death of the runner ---------------- */

/* The runner died after it asked for the key and before it ordered anything. If it
 * got the key, releases it: nothing was run. After a takeover ends its lease
 * instead, so that the next attempt is a takeover too. */
void runner_death_of_claim(const struct run *run);

/* The runner died after the order @start to run the command, which ended with @end
 * (NULL: it was not run). Records unknown with @note, ends the lease under rerun, or
 * records a retry if that is the rule for this ending. Without an end releases the
 * key, or ends its lease if an earlier attempt may have had effects. */
void runner_death_of_work(const struct run *run,
                          const struct supervisor_order *start,
                          const struct child_end *end, const char *note);

/* ---- Ending the command in time ---- */

/* The way of the work:
 *
 *     RUNNING -- a reason: the lease, --max-time, an order, the runner's death,
 *        |       descendants that stayed --> STOPPING: SIGTERM and SIGCONT to all
 *        |                                      |
 *        |                                      | kill_at_ms of the lease, or
 *        |                                      | stop_kill_at_ms of the reason
 *        |                                      v
 *        |-- asleep until after kill_at_ms --> KILLING: SIGKILL, again and again
 *        |                                      |
 *        |                                      '-- for SUPERVISOR_KILL_MS --> survived
 *        v
 *     alone: from each of the three, once waitid() knows of no child
 *
 * STOPPING: stopping is set. KILLING: killed_at_ms is set.
 *
 * From the order to start until nobody is left. All times by io_now_ms();
 * SUPERVISOR_NEVER where there is none. */
struct supervision {
    struct run own;                /* With the claim that was last asked for. */
    const struct run *run;         /* That. */
    struct supervisor_claim claim; /* The bytes that its request points to. */
    bool asked; /* The store was asked, and no attempt is known of it. */
    struct supervisor_order start;
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
    bool dismissed; /* The runner has dismissed us. */
    struct child_end end;
    struct descendants_survivor survivor; /* If survived. */

    enum supervisor_why stopping; /* All got SIGTERM, for the first reason. */
    int64_t kill_at_ms;           /* By the lease. */
    int64_t stop_kill_at_ms;      /* By anything else. */
    int64_t max_end_ms;           /* Of --max-time. */
    int64_t left_at_ms;   /* When the descendants that remained are stopped. */
    int64_t killed_at_ms; /* Since when SIGKILL is sent. */
    int64_t kill_next_ms;
};

/* @ms and @by_ms more; SUPERVISOR_NEVER stays. */
int64_t supervision_later(int64_t ms, int64_t by_ms);

/* The group of the command while its number is certain to be its own, or 0. */
pid_t supervision_group(const struct supervision *sup);

/* True if nothing is left to end, or what is left cannot be ended. */
bool supervision_is_settled(const struct supervision *sup);

/* True with --allow-background after the end of the command: leave its processes
 * alone. */
bool supervision_may_be_left(const struct supervision *sup);

/* Sends @news to the runner. If that fails, closes our end, so that the runner takes
 * us for dead and does not wait for it. */
void supervision_tell(const struct supervision *sup,
                      const struct supervisor_news *news);

/* SIGTERM to all now, and SIGKILL after @grace_ms. The first reason counts. */
void supervision_stop_within(struct supervision *sup, enum supervisor_why why,
                             int64_t grace_ms);

/* Does whatever is due now. */
void supervision_obey_clock(struct supervision *sup);

/* Makes sup->timer readable when the next thing is due. */
void supervision_set_timer(struct supervision *sup);

#endif
