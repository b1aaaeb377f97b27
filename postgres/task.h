/* One op on its way through the database: which request comes next, and what its answer
 * means. No I/O and no clock.
 *
 *     start ----------------> LOOK <----------------------------+
 *       |                      |                                |
 *       |                      v                                |
 *       +------------------> DECIDE <---------------+           | not answered;
 *                            |    |                 |           | or an update that
 *        a body is given     v    |       refused,  |           | found the row changed,
 *        that is not there  LOAD  |       shown the |           | or held by somebody
 *                            |    |            row  |           |
 *                            v    v                 |           |
 *                             ACT ----------------> WRITE ------+
 *                            |                      ^   |
 *        nothing to write    |        EXTEND -------+   | applied
 *                            v       too short          v
 *                           DONE <----------------------+
 *
 *     an end with a commit (completion.c) is answered by DECIDE with what WRITE would
 *     write: its caller writes that
 *
 *     LIST           a page of rows
 *     PURGE          a page of rows that are due; PURGE_GO deletes what has expired,
 *                    once all claims know that such fences are gone: PURGE_RAISE says
 *                    so, and PURGE_WAIT waits for those that began before
 *     PURGE_LIMITS   windows that are over
 *     LIMIT          a window and the request in it; LIMIT_GO counts
 *     MARK           the mark of a store that is moved: move.c
 */
#ifndef IDEM_POSTGRES_TASK_H
#define IDEM_POSTGRES_TASK_H

#include "limit/limit.h"
#include "postgres/request.h"
#include "store/remote/claims.h"

enum idem__pg_where_to {
    IDEM__PG_TO_NONE = 0,
    IDEM__PG_TO_LOOK,
    IDEM__PG_TO_DECIDE,
    IDEM__PG_TO_LOAD,
    IDEM__PG_TO_ACT,
    IDEM__PG_TO_EXTEND,
    IDEM__PG_TO_WRITE,
    IDEM__PG_TO_LIST,
    IDEM__PG_TO_PURGE,
    IDEM__PG_TO_PURGE_RAISE,
    IDEM__PG_TO_PURGE_WAIT,
    IDEM__PG_TO_PURGE_GO,
    IDEM__PG_TO_PURGE_LIMITS,
    IDEM__PG_TO_LIMIT,
    IDEM__PG_TO_LIMIT_GO,
    IDEM__PG_TO_MARK,
    IDEM__PG_TO_MARK_WAIT,
    IDEM__PG_TO_MARK_READ,
    IDEM__PG_TO_PAUSE,
    IDEM__PG_TO_DONE,
};

enum {
    IDEM__PG_PAGE = 100, /* Rows that a purge looks at in one slice. */
};

/* The parts that the tasks of a store share. */
struct idem__pg_env {
    struct idem__claims *claims;
    struct idem_host host; /* random is used, for jitter. */
    uint8_t *scratch;      /* IDEM_HEAD_MAX bytes, for one task at a time. */
    int64_t *purged_in;    /* The number of the last transaction of a purge. */
    uint64_t *known_floor; /* Claims know that fences up to this are gone. */
};

struct idem__pg_task {
    const struct idem__pg_env *env;
    struct idem_op *op;

    struct idem__pg_request request; /* To be sent, unless paused or done. */
    int64_t pause_ms;
    enum idem__pg_where_to state; /* One that asks, or PAUSE, or DONE. */
    enum idem__pg_where_to after_pause;

    unsigned tries;  /* Requests in vain, since a write was last answered. */
    unsigned waits;  /* Pauses for a reason of idem__pg_again(). */
    unsigned rounds; /* Decisions. */
    bool ambiguous;  /* A write of ours may have been applied. */

    bool has_found;
    bool remembered; /* found is what this handle wrote, and not a reading. */
    struct idem__pg_row found;
    struct idem__buffer found_memory;

    struct idem_decision decision;
    struct idem_record given;
    struct idem_record next;    /* As it is to be written. */
    struct idem__buffer head;   /* Of it. */
    struct idem__buffer loaded; /* found, once its bodies were loaded. */
    struct idem__buffer last;   /* The head of found, where that is a write of
                                    ours that was not read back. */
    bool extending;

    struct idem__pg_victim *victims; /* IDEM__PG_PAGE; NULL: not needed yet. */
    size_t victims_len;
    uint64_t fence;        /* The highest of theirs, */
    uint64_t floor;        /* and the one up to which all count as gone. */
    int64_t purge_boot_ms; /* When the page was asked for. */
    bool last_page;
    struct idem_limit_decision limit;
    struct idem_limit_state limit_found;
};

void idem__pg_task_init(struct idem__pg_task *task,
                        const struct idem__pg_env *env);
void idem__pg_task_start(struct idem__pg_task *task, struct idem_op *op,
                         const struct idem_now *now);
void idem__pg_task_answered(struct idem__pg_task *task,
                            const struct idem_now *now);
void idem__pg_task_resume(struct idem__pg_task *task,
                          const struct idem_now *now);
void idem__pg_task_give_up(struct idem__pg_task *task);
void idem__pg_task_no_clock(struct idem__pg_task *task);
void idem__pg_task_reset(struct idem__pg_task *task);
void idem__pg_task_free(struct idem__pg_task *task);

/* ---- For the files of the task ---- */

/* Ends the op. These return DONE. */
enum idem__pg_where_to idem__pg_fail(struct idem__pg_task *task,
                                     const struct idem_error *error);
enum idem__pg_where_to idem__pg_fail_with(struct idem__pg_task *task, int code,
                                          const char *text);

/* After a request that was not OK: @again after a pause, or the end. */
enum idem__pg_where_to idem__pg_retry(struct idem__pg_task *task,
                                      enum idem__pg_where_to again);

/* Asks again after a pause, because of @why: another was faster, say. */
enum idem__pg_where_to idem__pg_again(struct idem__pg_task *task,
                                      enum idem__pg_where_to again,
                                      const char *why);

/* Makes task->request an empty one. */
struct idem__pg_request *idem__pg_ask(struct idem__pg_task *task,
                                      enum idem__pg_ask ask);

/* States. One that asks prepares task->request and returns itself; an answer returns the
 * next. */
typedef enum idem__pg_where_to idem__pg_step_fn(struct idem__pg_task *task,
                                                const struct idem_now *now);
idem__pg_step_fn idem__pg_look;
idem__pg_step_fn idem__pg_look_answered;
idem__pg_step_fn idem__pg_decide;
idem__pg_step_fn idem__pg_load;
idem__pg_step_fn idem__pg_load_answered;
idem__pg_step_fn idem__pg_act;
idem__pg_step_fn idem__pg_extend;
idem__pg_step_fn idem__pg_write;
idem__pg_step_fn idem__pg_write_answered;
idem__pg_step_fn idem__pg_list;
idem__pg_step_fn idem__pg_list_answered;
idem__pg_step_fn idem__pg_purge;
idem__pg_step_fn idem__pg_purge_answered;
idem__pg_step_fn idem__pg_purge_raise;
idem__pg_step_fn idem__pg_purge_raise_answered;
idem__pg_step_fn idem__pg_purge_wait;
idem__pg_step_fn idem__pg_purge_wait_answered;
idem__pg_step_fn idem__pg_purge_go;
idem__pg_step_fn idem__pg_purge_go_answered;
idem__pg_step_fn idem__pg_purge_limits;
idem__pg_step_fn idem__pg_purge_limits_answered;
idem__pg_step_fn idem__pg_limit;
idem__pg_step_fn idem__pg_limit_answered;
idem__pg_step_fn idem__pg_limit_go;
idem__pg_step_fn idem__pg_limit_go_answered;
idem__pg_step_fn idem__pg_mark;
idem__pg_step_fn idem__pg_mark_answered;
idem__pg_step_fn idem__pg_mark_wait;
idem__pg_step_fn idem__pg_mark_wait_answered;
idem__pg_step_fn idem__pg_mark_read;
idem__pg_step_fn idem__pg_mark_read_answered;

/* Takes the row of a LOOK or a refused CLAIM as what is there. False: the op failed. */
bool idem__pg_found(struct idem__pg_task *task);

/* Remembers the claim that was written, and looks one up: remembered.c. */
void idem__pg_remember(struct idem__pg_task *task);
bool idem__pg_recall(struct idem__pg_task *task);

#endif
