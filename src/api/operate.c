/* Implements the blocking verbs of an operator: get, list, resolve, reopen, import,
 * count, purge, and moving a store. */
#include "api/call.h"
#include "contract/move.h"
#include "core/error.h"
#include "core/move.h"
#include "queue/op.h"

#include <idem/operator.h>
#include <idem/queue.h>

enum {
    PAGE = 256,
    PURGE_SLICE = 100
};

/* The answer of idem_get() is its op. */
struct idem_answer {
    struct idem_op op;
};

int idem_get(struct idem_store *store, struct idem_slice scope,
             struct idem_slice key, struct idem_answer **ret_answer,
             struct idem_error *ret_error)
{
    struct idem_op *op;
    int rc = idem_op_get(scope, key, &op, ret_error);

    if (rc != 0) {
        return rc;
    }
    rc = idem__call(store, &op, ret_error);
    if (rc != 0) {
        return rc;
    }
    *ret_answer = (struct idem_answer *)op;
    return 0;
}

const struct idem_record *idem_answer_record(const struct idem_answer *answer)
{
    return answer->op.record;
}

void idem_answer_destroy(struct idem_answer *answer)
{
    idem_op_destroy((struct idem_op *)answer);
}

/* Counts the records that the caller is shown. */
struct counter {
    idem_list_fn *each;
    void *ctx;
    uint64_t left;
};

static int count_and_show(void *ctx, int code, const struct idem_record *record)
{
    struct counter *counter = ctx;
    int rc = counter->each(counter->ctx, code, record);

    if (rc == 0 && counter->left != 0 && --counter->left == 0) {
        rc = 1;
    }
    return rc;
}

static int make_list(const struct idem_filter *filter, struct counter *counter,
                     struct idem_op **ret_op, struct idem_error *error)
{
    struct idem_op *op;

    if (filter->size != sizeof(*filter)) {
        return idem__error(error, IDEM_EINVALID,
                           "filter: begin with IDEM_FILTER_INIT");
    }
    if (filter->scope.len > IDEM_SCOPE_MAX) {
        return idem__error(error, IDEM_EINVALID, "scope: at most %d bytes",
                           IDEM_SCOPE_MAX);
    }
    op = idem__op_create(IDEM_OP_LIST, filter->scope.len);
    if (op == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    op->u.list.filter = *filter;
    idem__op_keep(op, &op->u.list.filter.scope);
    op->u.list.each = count_and_show;
    op->u.list.ctx = counter;
    op->u.list.limit = PAGE;
    *ret_op = op;
    return 0;
}

int idem_list(struct idem_store *store, const struct idem_filter *filter,
              idem_list_fn *each, void *ctx, int64_t *ret_now_ms,
              struct idem_error *ret_error)
{
    struct counter counter = {each, ctx, filter->max};
    struct idem_op *op;
    int rc = make_list(filter, &counter, &op, ret_error);

    if (rc != 0) {
        return rc;
    }
    do {
        rc = idem__call(store, &op, ret_error);
    } while (rc == 0 && !op->u.list.done);
    if (rc == 0) {
        if (ret_now_ms != NULL) {
            *ret_now_ms = op->u.list.now_ms;
        }
        idem_op_destroy(op);
    }
    return rc;
}

static int read_pages(struct idem_store *store, struct idem_op **op,
                      struct idem_page *page, struct idem_error *error)
{
    int rc = 0;

    do {
        rc = idem__call(store, op, error);
    } while (rc == 0 && !(*op)->u.list.done &&
             (page->look_max == 0 || (*op)->u.list.looked < page->look_max));
    return rc;
}

int idem_list_page(struct idem_store *store, const struct idem_filter *filter,
                   idem_list_fn *each, void *ctx, struct idem_page *page,
                   struct idem_error *ret_error)
{
    struct counter counter = {each, ctx, filter->max};
    struct idem_op *op;
    int rc;

    if (page->size != sizeof(*page)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "page: begin with IDEM_PAGE_INIT");
    }
    rc = make_list(filter, &counter, &op, ret_error);
    if (rc != 0) {
        return rc;
    }
    if (idem__list_place_read(store, page->place, op) != 0) {
        idem_op_destroy(op);
        return idem__error(ret_error, IDEM_EINVALID,
                           "place: not written for this list: its store and "
                           "filter must be the same");
    }
    rc = read_pages(store, &op, page, ret_error);
    if (rc == 0) {
        idem__list_place_write(store, op, page->place);
        page->done = op->u.list.done && !op->u.list.stopped;
        page->looked += op->u.list.looked;
        page->now_ms = op->u.list.now_ms;
        idem_op_destroy(op);
    }
    return rc;
}

/* Sends a person's decision to the store. */
static int decide(struct idem_store *store, struct idem_slice scope,
                  struct idem_slice key, uint64_t fence, struct idem_slice who,
                  const struct idem_outcome *outcome, unsigned flags,
                  struct idem_error *error)
{
    struct idem_op *op;
    int rc = idem__op_resolve(store, scope, key, fence, who, outcome, flags,
                              &op, error);

    if (rc != 0) {
        return rc;
    }
    rc = idem__call(store, &op, error);
    if (rc != 0) {
        return rc;
    }
    idem_op_destroy(op);
    return 0;
}

int idem_resolve(struct idem_store *store, struct idem_slice scope,
                 struct idem_slice key, uint64_t fence, struct idem_slice who,
                 const struct idem_outcome *outcome, unsigned flags,
                 struct idem_error *ret_error)
{
    if (outcome->status == IDEM_STATUS_UNKNOWN) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "status: completed, failed or released");
    }
    if (outcome->status == IDEM_STATUS_RETRY) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "status: completed, failed or released; "
                           "idem_reopen() lets the work be run again");
    }
    if ((flags & ~(unsigned)IDEM_RESOLVE_FORCE) != 0) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "flags: 0 or IDEM_RESOLVE_FORCE");
    }
    return decide(store, scope, key, fence, who, outcome, flags, ret_error);
}

int idem_reopen(struct idem_store *store, struct idem_slice scope,
                struct idem_slice key, uint64_t fence, struct idem_slice who,
                struct idem_slice reason, struct idem_error *ret_error)
{
    struct idem_outcome outcome = {.status = IDEM_STATUS_RETRY, .text = reason};

    return decide(store, scope, key, fence, who, &outcome, /* flags= */ 0,
                  ret_error);
}

int idem_import(struct idem_store *store, const struct idem_record *record,
                bool *ret_added, struct idem_error *ret_error)
{
    struct idem_op *op;
    int rc = idem_op_import(record, &op, ret_error);

    if (rc != 0) {
        return rc;
    }
    rc = idem__call(store, &op, ret_error);
    if (rc != 0) {
        return rc;
    }
    if (ret_added != NULL) {
        *ret_added = idem_op_added(op);
    }
    idem_op_destroy(op);
    return 0;
}

int idem_count(struct idem_store *store, struct idem_counters *ret_counters,
               struct idem_error *ret_error)
{
    struct idem_op *op;
    int rc;

    if (ret_counters->size != sizeof(*ret_counters)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "counters: begin with IDEM_COUNTERS_INIT");
    }
    op = idem__op_create(IDEM_OP_COUNT, 0);
    if (op == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = idem__call(store, &op, ret_error);
    if (rc == 0) {
        *ret_counters = op->u.counters;
        idem_op_destroy(op);
    }
    return rc;
}

/* Rests after a slice, also after the last one that @max allows: the caller may call
 * again at once. */
static void rest(const struct idem_store *store, int64_t ms)
{
    const struct idem_host *host = &store->options.host;

    if (ms > 0) {
        host->sleep(host->ctx, ms);
    }
}

int idem_purge(struct idem_store *store, uint64_t max, uint64_t *ret_purged,
               struct idem_error *ret_error)
{
    struct idem_op *op = idem__op_create(IDEM_OP_PURGE, 0);
    uint64_t purged = 0;
    bool done = false;
    int rc;

    if (op == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    while (!done && (max == 0 || purged < max)) {
        uint64_t left = max == 0 ? PURGE_SLICE : max - purged;

        op->u.purge.max = left < PURGE_SLICE ? left : PURGE_SLICE;
        op->u.purge.purged = 0;
        op->u.purge.rest_ms = 0;
        rc = idem__call(store, &op, ret_error);
        if (rc != 0) {
            return rc;
        }
        purged += op->u.purge.purged;
        done = op->u.purge.done;
        rest(store, done ? 0 : op->u.purge.rest_ms);
    }
    idem_op_destroy(op);
    if (ret_purged != NULL) {
        *ret_purged = purged;
    }
    return 0;
}

/* ---- Moving a store: reading and setting its mark ---- */

#define FENCE_MAX (UINT64_C(1) << 61)

int idem__move_get(struct idem_store *store, struct idem_move *ret_move,
                   struct idem_error *ret_error)
{
    struct idem_op *op = idem__op_create(IDEM_OP_MOVE, 0);
    int rc;

    if (op == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = idem__call(store, &op, ret_error);
    if (rc != 0) {
        return rc;
    }
    rc = idem__move_read(idem_str(op->u.move.found), ret_move);
    ret_move->fence_floor = op->u.move.found_floor;
    ret_move->store_ms = op->u.move.found_ms;
    ret_move->settles_ms = op->u.move.settles_ms;
    idem_op_destroy(op);
    return rc == 0 ? 0
                   : idem__error(ret_error, rc,
                                 "the store's mark of a move is damaged");
}

static int make_op(const char *was, const char *mark,
                   const struct idem_move *move, struct idem_op **ret_op)
{
    struct idem_op *op =
        idem__op_create(IDEM_OP_MOVE, strlen(was) + strlen(mark));

    if (op == NULL) {
        return IDEM_ENOMEM;
    }
    op->u.move.set = true;
    op->u.move.was = idem_str(was);
    op->u.move.mark = idem_str(mark);
    idem__op_keep(op, &op->u.move.was);
    idem__op_keep(op, &op->u.move.mark);
    if (move->state == IDEM_MOVE_HERE) {
        op->u.move.fence_floor = move->fence_floor;
        op->u.move.store_ms = move->store_ms;
    }
    *ret_op = op;
    return 0;
}

int idem__move_set(struct idem_store *store, const struct idem_move *was,
                   const struct idem_move *move, struct idem_error *ret_error)
{
    char marks[2][IDEM_MARK_MAX];
    struct idem_op *op;
    int rc;

    if (idem__move_write(was, marks[0]) != 0 ||
        idem__move_write(move, marks[1]) != 0 ||
        move->fence_floor >= FENCE_MAX || move->store_ms < 0) {
        return idem__error(ret_error, IDEM_EINVALID, "move: invalid state");
    }
    rc = make_op(marks[0], marks[1], move, &op);
    if (rc != 0) {
        return idem__error_plain(ret_error, rc);
    }
    rc = idem__call(store, &op, ret_error);
    if (rc == 0) {
        idem_op_destroy(op);
    }
    return rc;
}
