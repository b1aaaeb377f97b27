/* A store in which the test decides the answer to each op. */
#include "script.h"

#include "clone.h"
#include "queue/op.h"
#include "queue/queue.h"
#include "test.h"

#include <idem/memory.h>
#include <idem/queue.h>

static struct script *script_of(struct idem_store *base)
{
    return (struct script *)base;
}

static int script_submit(struct idem_store *base, struct idem_op *op)
{
    struct script *script = script_of(base);
    struct idem_op **at = &script->pending;

    if (script->refuse != 0) {
        return script->refuse;
    }
    while (*at != NULL) {
        at = &(*at)->next;
    }
    op->next = NULL;
    *at = op;
    return 0;
}

static enum idem_cancel script_cancel(struct idem_store *base,
                                      struct idem_op *op)
{
    struct script *script = script_of(base);
    struct idem_op **at = &script->pending;

    script->cancelled++;
    while (*at != NULL && *at != op) {
        at = &(*at)->next;
    }
    if (*at == op) {
        *at = op->next;
        return IDEM_CANCEL_TAKEN_BACK;
    }
    return idem__op_detach(op);
}

static void script_drive(struct idem_store *base, struct idem_queue *queue,
                         int64_t deadline_ms)
{
    struct script *script = script_of(base);
    struct idem_op **at = &script->pending;

    while (*at != NULL) {
        struct idem_op *op = *at;
        enum script_does does;

        if (script->served < COUNT(script->nonces)) {
            memcpy(script->nonces[script->served], op->nonce, 16);
        }
        script->served++;
        does = script->serve(script, op);
        if (does == SCRIPT_WAITS) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        op->next = NULL;
        idem__op_run(op);
        if (does == SCRIPT_KEEPS) {
            script->kept = op;
        } else {
            idem__op_answer(op);
        }
    }
    idem__queue_sleep(queue, deadline_ms);
}

static void script_close(struct idem_store *base)
{
    idem_close(script_of(base)->inner);
    idem__store_finish(base);
}

static const struct idem_store_ops script_ops = {
    .name = "script",
    .submit = script_submit,
    .cancel = script_cancel,
    .drive = script_drive,
    .close = script_close,
};

struct idem_store *script_open(struct script *script, script_fn *serve,
                               const struct idem_open_options *options)
{
    struct idem_open_options quick = IDEM_OPEN_OPTIONS_INIT;

    quick.timeout_ms = 200;
    memset(script, 0, sizeof(*script));
    assert_ok(idem__store_init(&script->base, &script_ops,
                               options == NULL ? &quick : options, &why));
    script->serve = serve;
    return &script->base;
}

void script_release(struct script *script)
{
    struct idem_op *op = script->kept;

    script->kept = NULL;
    idem__op_answer(op);
}

void script_relay(struct script *script, struct idem_op *op)
{
    struct idem_queue *queue;
    struct idem_op *copy;

    if (script->inner == NULL) {
        assert_ok(
            idem_memory_open(&script->base.options, &script->inner, &why));
    }
    assert_ok(idem_queue_create(script->inner, &queue, &why));
    copy = clone_op(op);
    assert_non_null(copy);
    assert_ok(idem_queue_submit(queue, copy, &why));
    copy = idem_queue_reap(queue, -1);

    op->error = copy->error;
    op->verdict = copy->verdict;
    op->takeover = copy->takeover;
    op->lease_left_ms = copy->lease_left_ms;
    if (op->verb == IDEM_OP_PURGE) {
        op->u.purge = copy->u.purge;
    } else if (op->verb == IDEM_OP_LIST) {
        op->u.list = copy->u.list;
    } else if (op->verb == IDEM_OP_IMPORT) {
        op->u.import.added = copy->u.import.added;
    }
    if (copy->has_record) {
        assert_ok(idem__op_set_record(op, copy->record));
    }
    idem_op_destroy(copy);
    idem_queue_destroy(queue);
}
