/* supervision.h: what a supervisor knows of its command, and how it ends it; see
 * supervisor.h. */
#ifndef IDEM_CLI_RUN_SUPERVISION_H
#define IDEM_CLI_RUN_SUPERVISION_H

#include "run/child.h"
#include "run/descendants.h"
#include "run/run.h"
#include "run/supervisor.h"

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
    bool dismissed; /* It wants nothing more. */
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

/* There is nothing more to end, or no way to. */
bool supervision_is_settled(const struct supervision *sup);

/* Processes that outlive the command are left to themselves once nobody waits for
 * them. */
bool supervision_may_be_left(const struct supervision *sup);

/* A runner that cannot be told must not wait for it: to it we are dead. */
void supervision_tell(const struct supervision *sup,
                      const struct supervisor_news *news);

/* SIGTERM to all now, and SIGKILL after @grace_ms. The first reason counts. */
void supervision_stop_within(struct supervision *sup, enum supervisor_why why,
                             int64_t grace_ms);

/* Does what is due by now. */
void supervision_obey_clock(struct supervision *sup);

/* Makes sup->timer readable when the next thing is due. */
void supervision_set_timer(struct supervision *sup);

#endif
