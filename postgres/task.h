/* One op at the database, for the machine of remote stores (store/remote/machine.h): the
 * requests of its states, and the meaning of an answer. No I/O and no clock.
 *
 *     An end with a commit (completion.c) is done at DECIDE: it gets the record that WRITE
 *     would write, and its caller writes that.
 *
 *     LIST           reads a page of rows
 *     PURGE          reads a page of rows that are due. PURGE_GO deletes the expired ones,
 *                    once every claim knows that their fences are gone: PURGE_RAISE raises
 *                    the fence floor, and PURGE_WAIT waits for claims that began before
 *     PURGE_LIMITS   deletes windows that are over
 *     LIMIT          reads a window and the request in it; LIMIT_GO counts the request
 *     MARK           sets or reads the mark of a store that is moved: task.c
 */
#ifndef IDEM_POSTGRES_TASK_H
#define IDEM_POSTGRES_TASK_H

#include "limit/limit.h"
#include "postgres/task_request.h"

/* The states that only this service has. */
enum {
    IDEM__STATE_MARK = IDEM__STATE_MOVE,

    IDEM__STATE_MARK_WAIT = IDEM__STATE_OWN,
    IDEM__STATE_MARK_READ,
    IDEM__STATE_PURGE_RAISE,
    IDEM__STATE_PURGE_WAIT,
    IDEM__STATE_PURGE_GO,
    IDEM__STATE_PURGE_LIMITS,
    IDEM__STATE_LIMIT_GO,
};

enum {
    IDEM__PG_PAGE = 100, /* Rows that a purge reads in one slice. */
};

/* The parts that the tasks of a store share. */
struct idem__pg_env {
    struct idem__flight_env base;
    int64_t *purged_in;    /* The number of the last transaction of a purge. */
    uint64_t *known_floor; /* Every claim gets a fence above this. */
};

struct idem__pg_task {
    struct idem__flight base;
    const struct idem__pg_env *env;
    struct idem__pg_request request; /* To be sent, or answered. */

    struct idem__pg_row found;  /* base.found. */
    struct idem_record next;    /* base.next_record. */
    struct idem__buffer loaded; /* The memory of found, with its bodies. */

    struct idem__pg_victim *victims; /* IDEM__PG_PAGE; NULL: not needed yet. */
    size_t victims_len;
    uint64_t fence;        /* The highest fence of the victims. */
    uint64_t floor;        /* The fence floor that PURGE_RAISE sets. */
    int64_t purge_boot_ms; /* When the page was requested. */
    bool last_page;
    struct idem_limit_decision limit;
    struct idem_limit_state limit_found;
};

void idem__pg_task_init(struct idem__pg_task *task,
                        const struct idem__pg_env *env);
void idem__pg_task_reset(struct idem__pg_task *task);
void idem__pg_task_free(struct idem__pg_task *task);

/* ---- For the files of the task ---- */

/* After a request that was not OK: returns @again after a pause, or ends the op. */
idem__state idem__pg_retry(struct idem__pg_task *task, idem__state again);

/* Empties task->request, and makes it one of kind @ask. */
struct idem__pg_request *idem__pg_ask(struct idem__pg_task *task,
                                      enum idem__pg_ask ask);

/* Deciding: record.c. */
idem__state idem__pg_task_decide(struct idem__flight *flight,
                                 const struct idem_record *there);
idem__state idem__pg_task_prepare(struct idem__flight *flight);

/* Takes the row of a LOOK or a refused CLAIM as the record on which to decide. Returns the
 * next state. */
idem__state idem__pg_found(struct idem__pg_task *task);

/* The states. Entering one prepares task->request and returns SEND; its answer returns the
 * next state. */
typedef idem__state idem__pg_step_fn(struct idem__pg_task *task);
idem__pg_step_fn idem__pg_look_answered;
idem__pg_step_fn idem__pg_load;
idem__pg_step_fn idem__pg_load_answered;
idem__pg_step_fn idem__pg_write;
idem__pg_step_fn idem__pg_write_answered;
idem__pg_step_fn idem__pg_list;
idem__pg_step_fn idem__pg_list_answered;
idem__pg_step_fn idem__pg_purge;
idem__pg_step_fn idem__pg_purge_answered;
idem__pg_step_fn idem__pg_purge_raise;
idem__pg_step_fn idem__pg_purge_raise_answered;
idem__pg_step_fn idem__pg_purge_wait_answered;
idem__pg_step_fn idem__pg_purge_go;
idem__pg_step_fn idem__pg_purge_go_answered;
idem__pg_step_fn idem__pg_purge_limits;
idem__pg_step_fn idem__pg_purge_limits_answered;
idem__pg_step_fn idem__pg_limit;
idem__pg_step_fn idem__pg_limit_answered;
idem__pg_step_fn idem__pg_limit_go;
idem__pg_step_fn idem__pg_limit_go_answered;

#endif
