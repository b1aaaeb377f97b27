/* The mark of a table that is moved, in an item beside those of records:
 *
 *     id          "idem#move", the key of the table, in whatever layout it is
 *     idem_mark   S  core/move.h; "open" for none
 *     idem_floor  N  all later fences are above it
 *     lim         N  0: by it lists and purges tell the item from a record
 *
 * No write of a record can be conditional on another item, unless each claim is to be a
 * transaction at twice the price. So a handle reads the mark before its first claim, and
 * from then on trusts what it read for IDEM__GATE_MS, counted by the boot clock from
 * before the request. A claim is answered STARTED while that lasts; else the mark is read
 * once more, after the claim was written:
 *
 *     handle   read (none) ............ claim written, STARTED
 *              |<-------------- IDEM__GATE_MS ------------->|
 *     mover                   mark written
 *                             |<-------------- IDEM__GATE_MS ------------->| list
 *
 * The mover waits for as long before it lists the table: each claim that anybody was
 * told of is in it, however long its process was stopped. */
#ifndef IDEM_AWS_DYNAMODB_TASK_GATE_H
#define IDEM_AWS_DYNAMODB_TASK_GATE_H

#include "aws/dynamodb/layout/request.h"

enum {
    IDEM__GATE_MS = 30 * 1000
};

/* The mark as a handle last read it. Zeroed: not read yet. */
struct idem__gate {
    char mark[IDEM_MARK_MAX];
    uint64_t floor;
    int64_t until_boot_ms;
};

struct idem__task;

/* True if the op of @task starts something, and the gate has to be read first. */
bool idem__gate_is_due(const struct idem__task *task,
                       const struct idem_now *now);

/* True if the claim of @task, which is in the table, may not be answered before the gate
 * was read. */
bool idem__gate_doubts(const struct idem__task *task,
                       const struct idem_now *now);

/* @now, with what the gate says. */
struct idem_now idem__gate_now(const struct idem__task *task,
                               const struct idem_now *now);

/* True if @name is the key of its item. */
bool idem__gate_is(struct idem_slice name);

#endif
