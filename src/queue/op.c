/* Manages ops: their memory, their arguments and their answers. */
#include "queue/op.h"

#include "base/crash.h"
#include "base/heap.h"
#include "core/error.h"
#include "queue/queue.h"

#include <assert.h>
#include <idem/queue.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    SLICES_MAX = 16 + 3 * IDEM_HISTORY_MAX,
    SHORT_ARGS_MAX = 512, /* Up to here, arguments follow the op in its
                             block. */
};

struct idem_op *idem__op_create(enum idem_verb verb, size_t args_len)
{
    /* One allocation serves most ops. */
    bool is_short = args_len <= SHORT_ARGS_MAX;
    struct idem_op *op = idem__alloc(sizeof(*op) + (is_short ? args_len : 0));

    if (op == NULL) {
        return NULL;
    }
    memset(op, 0, sizeof(*op));
    op->args = is_short ? (uint8_t *)(op + 1) : idem__alloc(args_len);
    if (op->args == NULL) {
        idem__free(op);
        return NULL;
    }
    op->verb = verb;
    return op;
}

static bool has_long_args(const struct idem_op *op)
{
    return op->args != (const uint8_t *)(op + 1);
}

uint8_t *idem__op_take_args(struct idem_op *op)
{
    uint8_t *args = has_long_args(op) ? op->args : NULL;

    op->args = (uint8_t *)(op + 1);
    op->args_len = 0;
    return args;
}

void idem__op_keep(struct idem_op *op, struct idem_slice *slice)
{
    uint8_t *to = op->args + op->args_len;

    if (slice->len > 0) {
        memcpy(to, slice->base, slice->len);
        op->args_len += slice->len;
    }
    slice->base = to;
}

/* Lists every slice of @record that may have to be copied. */
static size_t record_slices(struct idem_record *record, struct idem_slice **ret)
{
    size_t n = 0;
    size_t i;

    ret[n++] = &record->scope;
    ret[n++] = &record->key;
    ret[n++] = &record->owner;
    ret[n++] = &record->traceparent;
    ret[n++] = &record->fingerprint;
    ret[n++] = &record->result.bytes;
    ret[n++] = &record->result.content_type;
    ret[n++] = &record->result.meta;
    ret[n++] = &record->error;
    ret[n++] = &record->note;
    ret[n++] = &record->input;
    ret[n++] = &record->unknown_fields;
    for (i = 0; i < record->history_len; i++) {
        ret[n++] = &record->history[i].owner;
        ret[n++] = &record->history[i].meta;
        ret[n++] = &record->history[i].text;
    }
    return n;
}

static size_t total_len(struct idem_slice *const *slices, size_t n)
{
    size_t total = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        total += slices[i]->len;
    }
    return total;
}

size_t idem__op_record_len(const struct idem_record *record)
{
    struct idem_slice *slices[SLICES_MAX];
    struct idem_record copy = *record;
    size_t n = record_slices(&copy, slices);

    return total_len(slices, n);
}

int idem__op_import(struct idem_op *op, const struct idem_record *record)
{
    op->record = idem__alloc(sizeof(*record));
    if (op->record == NULL) {
        return IDEM_ENOMEM;
    }
    *op->record = *record;
    op->u.import.record = op->record;
    return 0;
}

void idem__op_keep_record(struct idem_op *op, struct idem_record *record)
{
    struct idem_slice *slices[SLICES_MAX];
    size_t n = record_slices(record, slices);
    size_t i;

    for (i = 0; i < n; i++) {
        idem__op_keep(op, slices[i]);
    }
}

void idem__op_copy_record(struct idem_record *record, uint8_t *to)
{
    struct idem_slice *slices[SLICES_MAX];
    size_t n = record_slices(record, slices);
    size_t i;

    for (i = 0; i < n; i++) {
        if (slices[i]->len > 0) {
            memcpy(to, slices[i]->base, slices[i]->len);
        }
        slices[i]->base = to;
        to += slices[i]->len;
    }
}

void idem_op_destroy(struct idem_op *op)
{
    if (op == NULL) {
        return;
    }
    idem__free(idem__op_take_args(op));
    idem__free(op->record);
    idem__free(op->commit);
    idem__free(op->attempt);
    idem__free(op);
}

/* ---- Answers ---- */

/* True if the bytes are in a block of long arguments, which may outlive the op; see
 * idem__op_take_args(). */
static bool in_args(const struct idem_op *op, struct idem_slice s)
{
    uintptr_t p = (uintptr_t)s.base;
    uintptr_t start = (uintptr_t)op->args;

    return s.len > 0 && has_long_args(op) && p >= start &&
           p - start < op->args_len;
}

/* Makes room for a record and, after it, for @total bytes that it points to. */
static bool make_room(struct idem_op *op, size_t total)
{
    struct idem_record *room;

    if (op->record != NULL && op->record_room >= total) {
        return true;
    }
    room = idem__alloc(sizeof(*room) + total);
    if (room == NULL) {
        return false;
    }
    if (op->verb == IDEM_OP_IMPORT) {
        op->u.import.record = room;
    }
    idem__free(op->record);
    op->record = room;
    op->record_room = total;
    return true;
}

int idem__op_set_record(struct idem_op *op, const struct idem_record *record)
{
    struct idem_slice *slices[SLICES_MAX];
    struct idem_record copy = *record;
    size_t n = record_slices(&copy, slices);
    size_t total = 0;
    uint8_t *to;
    size_t i;

    for (i = 0; i < n; i++) {
        total += in_args(op, *slices[i]) ? 0 : slices[i]->len;
    }
    /* The store calls this before the write (idem__verb_answer()), so that it makes no
     * change that it could not answer. */
    if (!make_room(op, total)) {
        op->has_record = false;
        return idem__op_fail(op, IDEM_ENOMEM, "%s",
                             idem_error_text(IDEM_ENOMEM));
    }
    to = (uint8_t *)(op->record + 1);
    for (i = 0; i < n; i++) {
        struct idem_slice *s = slices[i];

        if (s->len == 0) {
            s->base = NULL;
        } else if (!in_args(op, *s)) {
            memcpy(to, s->base, s->len);
            s->base = to;
            to += s->len;
        }
    }
    *op->record = copy;
    op->has_record = true;
    return 0;
}

int idem__op_fail(struct idem_op *op, int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)idem__verror(&op->error, code, format, args);
    va_end(args);
    return code;
}

void idem__op_run(struct idem_op *op)
{
    __atomic_store_n(&op->state, IDEM_OP_RUNNING, __ATOMIC_RELEASE);
}

/* One atomic step decides a race for the op between its caller, which detaches it, and
 * the store, which answers it. The loser learns from the old state that it lost. */
enum idem_cancel idem__op_detach(struct idem_op *op)
{
    int running = IDEM_OP_RUNNING;

    if (__atomic_compare_exchange_n(&op->state, &running, IDEM_OP_DETACHED,
                                    false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        return IDEM_CANCEL_DETACHED;
    }
    /* The store was faster: the answer is in the queue, or on its way there. */
    assert(running == IDEM_OP_ANSWERED);
    return IDEM_CANCEL_ANSWERED;
}

/* True if a caller waits for the answer. A detached op has no caller any more, and is
 * destroyed. */
static bool is_awaited(struct idem_op *op)
{
    int before =
        __atomic_exchange_n(&op->state, IDEM_OP_ANSWERED, __ATOMIC_ACQ_REL);

    assert(before != IDEM_OP_IDLE);
    /* The caller detached the op, so the store frees it. */
    if (before == IDEM_OP_DETACHED) {
        idem_op_destroy(op);
        return false;
    }
    return true;
}

static void push(struct idem_op *first, struct idem_op *last)
{
    if (first != NULL) {
        IDEM__CRASH_POINT("queue/answers");
        idem__queue_push(first->queue, first, last);
    }
}

void idem__op_answer_all(struct idem_op *ops)
{
    struct idem_op *first = NULL;
    struct idem_op *last = NULL;

    while (ops != NULL) {
        struct idem_op *op = ops;

        /* Read this first, because an op that is answered may be gone. */
        ops = op->next;
        if (!is_awaited(op)) {
            continue;
        }
        /* The queue cannot go away meanwhile: its owner waits for the answers that are
         * not pushed yet. */
        if (first != NULL && first->queue == op->queue) {
            last->next = op;
        } else {
            push(first, last);
            first = op;
        }
        last = op;
    }
    push(first, last);
}

void idem__op_answer(struct idem_op *op)
{
    op->next = NULL;
    idem__op_answer_all(op);
}

/* ---- Reading an op ---- */

void idem_op_set_user(struct idem_op *op, void *user)
{
    op->user = user;
}

void *idem_op_user(const struct idem_op *op)
{
    return op->user;
}

const uint8_t *idem_op_id(const struct idem_op *op)
{
    return op->id;
}

int idem_op_code(const struct idem_op *op)
{
    return op->error.code;
}

const struct idem_error *idem_op_error(const struct idem_op *op)
{
    return &op->error;
}

enum idem_verdict idem_op_verdict(const struct idem_op *op)
{
    return op->verdict;
}

bool idem_op_added(const struct idem_op *op)
{
    return op->verb == IDEM_OP_IMPORT && op->error.code == 0 &&
           op->u.import.added;
}

const struct idem_record *idem_op_record(const struct idem_op *op)
{
    return op->has_record ? op->record : NULL;
}
