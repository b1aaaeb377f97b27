/* The parts that small and large limits share on their way through the table:
 * see limit_task.c. */
#ifndef IDEM_AWS_DYNAMODB_LIMIT_LIMITER_H
#define IDEM_AWS_DYNAMODB_LIMIT_LIMITER_H

#include "aws/dynamodb/limit/limit_known.h"
#include "aws/dynamodb/task/task.h"

struct idem__limiter {
    struct idem_limit_decision decision;
    uint64_t takes[IDEM__LIMIT_SHARDS_MAX];
    uint64_t shares[IDEM__LIMIT_SHARDS_MAX];
    /* The bounds that the transaction was planned with. Once it is applied at least
     * that and what it took was taken from a shard. By then the bounds may have been
     * raised by a reading that saw it already: to add it twice would be too much. */
    uint64_t used[IDEM__LIMIT_SHARDS_MAX];
    unsigned spread; /* Shards that were in the way of others. */
    bool marks;      /* The transaction says that there are shards. */
    bool saw_small;  /* The item of small limits has no entry of the request. */

    /* Of a small limit: what its item says, and what a greater one took. */
    struct idem_limit_state own;
    bool is_beside;
    uint64_t others_used;
};

/* The item was not written by us: the op fails. Returns DONE. */
enum idem__state idem__limiter_corrupt(struct idem__task *task);

/* Decides on what was found. False: the op failed. */
bool idem__limiter_settle(struct idem__task *task,
                          const struct idem_limit_state *found,
                          const struct idem_now *now);

/* Ends the op with the decision. Returns DONE. */
enum idem__state idem__limiter_answer(struct idem__task *task, bool changed);

/* This handle's knowledge of the op's window. Valid until the next call. */
struct idem__limit_bounds *idem__limiter_bounds(struct idem__task *task);

/* The request's item, which is there: its answer is given again. Returns DONE. */
enum idem__state idem__limiter_found(struct idem__task *task, json_object *item,
                                     const struct idem_now *now);

/* ---- Answers ---- */

/* The item of a reading, or of a reason. NULL: none. */
json_object *idem__limiter_item(json_object *body);

/* The items that a reading of several found. NULL: none. */
json_object *idem__limiter_items(const struct idem__task *task,
                                 json_object *body);

/* Why a transaction was cancelled, as an array in *@ret_body, which the caller puts;
 * NULL: the answer was another one. */
json_object *idem__limiter_reasons(const struct idem__aws_request *request,
                                   json_object **ret_body);

/* One of them; NULL: none. */
json_object *idem__limiter_reason(json_object *reasons, size_t i);
bool idem__limiter_has_code(json_object *reason, const char *name);

/* The first state of a small limit. */
enum idem__state idem__limit_small_first(const struct idem__task *task,
                                         const struct idem_now *now);

#endif
