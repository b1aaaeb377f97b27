/* supervisor.h: the process between the runner and the command.
 *
 *     runner ---- fork, before the store is opened ----> supervisor
 *       |  <-- channel: orders down, news up -->           |
 *       |                                                 vfork
 *     pipes of stdout, stderr <------------------------- command
 *                                                          '- descendants
 *
 * The runner asks the store, carries the output and renews the lease. The
 * supervisor is the parent of the command and, as a subreaper, of every orphan
 * below it. It has no thread, no store and no output open, so that little can
 * keep it from its two duties:
 *
 * - No work goes on past the lease that it knows of, whatever became of the
 *   runner. Everything gets SIGTERM, then SIGKILL before the end.
 * - When the runner dies, which closes the channel, all of the work is stopped.
 *   Then the supervisor opens the store by itself and says so. That is a write under
 *   the attempt's fence like any other: every host knows of the death at once,
 *   and nobody ever has to guess whether a process is alive.
 *
 * - It says that the work is over only where waitid() has proved it: as a
 *   subreaper it has a child as long as one descendant is alive. A process that
 *   cannot be ended (an uninterruptible sleep, another user's) is told as a
 *   survivor. Then nobody records anything, and the lease decides.
 *
 * If the supervisor dies, its command dies with it, and the runner, a subreaper too,
 * ends what is left. If both are killed, the lease decides.
 *
 * A runner that had children before, because a shell became it by exec, could not
 * tell them from what a dead supervisor leaves. It puts a guard between: a subreaper
 * whose only child is the supervisor.
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
    SUPERVISOR_DONE, /* All is said: there is nothing left to keep. */
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
    int channel; /* -1: likewise. */
    int failed;  /* errno of what it could not be had for. */
    bool adopts; /* Should it be killed, its orphans become our children. */
};

/* Starts one for @run, whose request is complete and whose store is not open
 * yet. Without one, supervisor->failed says why. */
void supervisor_start(struct supervisor *supervisor, const struct run *run);

/* 0, or -1: it does not listen. */
int supervisor_tell(const struct supervisor *supervisor,
                    const struct supervisor_order *order,
                    const struct channel_fds *fds);

/* The same, for what needs no more words. */
void supervisor_say(const struct supervisor *supervisor,
                    enum supervisor_order_kind kind);

/* SUPERVISOR_ASK, for the request and the nonce of @run. */
void supervisor_ask(const struct supervisor *supervisor, const struct run *run);

/* 1 with @ret_news, 0: there are none; -1: it is dead. */
int supervisor_hear(const struct supervisor *supervisor, bool wait,
                    struct supervisor_news *ret_news);

/* The record is as it shall be: the supervisor goes, and its end is waited for. */
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

/* The runner died after it asked for the key and before it ordered anything. If
 * it got the key, that is released: nothing was run. After a takeover its lease
 * ends instead, so that the next one takes over too. */
void runner_death_of_claim(const struct run *run);

/* The runner died after the order @start to run the command, which ended as @end
 * says (NULL: it was not run). Nobody knows what that has done: the lease is over
 * now, and @note says so to people; or it is to be run again, where that is the
 * rule for how it ended. Without an end, the key is released; or its lease ends,
 * if another attempt may have had effects. */
void runner_death_of_work(const struct run *run,
                          const struct supervisor_order *start,
                          const struct child_end *end, const char *note);

#endif
