/* A wire between tasks and a table in memory. */
#include "wire.h"

#include "base/heap.h"
#include "core/error.h"

#include <assert.h>
#include <stdio.h>

const char *const fate_names[FATES] = {
    "good",       "not sent",  "throttled", "lost",        "answer lost",
    "500 before", "500 after", "twice",     "in conflict", "no old item",
};

void wire_answer(struct idem__aws_request *request, int status,
                 struct idem_slice body)
{
    if (body.len > request->answer_cap) {
        uint8_t *grown = idem__realloc(request->answer, body.len);

        assert(grown != NULL);
        request->answer = grown;
        request->answer_cap = body.len;
    }
    if (body.len > 0) {
        memcpy(request->answer, body.base, body.len);
    }
    request->answer_len = body.len;
    request->status = status;
    request->outcome = IDEM__AWS_ANSWERED;
    request->error.code = 0;
    request->error_type[0] = '\0';
    request->sends = 1;
}

void wire_silence(struct idem__aws_request *request, bool sent)
{
    request->outcome = sent ? IDEM__AWS_NO_ANSWER : IDEM__AWS_NOT_SENT;
    request->status = 0;
    request->answer_len = 0;
    request->sends = sent ? 1 : 0;
    (void)idem__error(&request->error, sent ? IDEM_EUNKNOWN : IDEM_EUNAVAILABLE,
                      "%s", sent ? "no answer" : "cannot be reached");
}

static void drop_item(struct idem__buffer *answer)
{
    int rc;
    json_object *object = idem__json_parse(idem__buffer_slice(answer), &rc);

    json_object *reasons = NULL;
    size_t i;

    json_object_object_del(object, "Item");
    if (json_object_object_get_ex(object, "CancellationReasons", &reasons)) {
        for (i = 0; i < json_object_array_length(reasons); i++) {
            json_object_object_del(json_object_array_get_idx(reasons, i),
                                   "Item");
        }
    }
    answer->len = 0;
    idem__buffer_str(answer, json_object_to_json_string(object));
    (void)json_object_put(object);
}

void wire_carry(struct table *table, struct idem__aws_request *request,
                enum fate fate)
{
    static const char throttled[] =
        "{\"__type\":\"com.amazonaws.dynamodb.v20120810#"
        "ProvisionedThroughputExceededException\",\"message\":\"slow\"}";
    static const char failed[] =
        "{\"__type\":\"com.amazonaws.dynamodb.v20120810#InternalServerError\"}";
    static const char conflict[] =
        "{\"__type\":\"com.amazonaws.dynamodb.v20120810#"
        "TransactionConflictException\"}";
    static const char canceled[] =
        "{\"__type\":\"com.amazonaws.dynamodb.v20120810#"
        "TransactionCanceledException\",\"CancellationReasons\":["
        "{\"Code\":\"TransactionConflict\"},{\"Code\":\"None\"}]}";
    struct idem__buffer answer = {.len = 0};
    int status = 0;

    switch (fate) {
    case FATE_GOOD:
    case FATE_NO_OLD_ITEM:
        status = table_apply(table, request->target, request->body, &answer);
        if (fate == FATE_NO_OLD_ITEM && status != 200) {
            drop_item(&answer);
        }
        wire_answer(request, status, idem__buffer_slice(&answer));
        break;
    case FATE_TWICE:
        (void)table_apply(table, request->target, request->body, &answer);
        status = table_apply(table, request->target, request->body, &answer);
        wire_answer(request, status, idem__buffer_slice(&answer));
        request->sends = 2;
        break;
    case FATE_NOT_SENT:
    case FATE_LOST:
        wire_silence(request, fate == FATE_LOST);
        break;
    case FATE_THROTTLED:
        wire_answer(request, 400, idem_str(throttled));
        break;
    case FATE_CONFLICT:
        wire_answer(request, 400,
                    idem_str(strstr(request->target, "Transact") != NULL
                                 ? canceled
                                 : conflict));
        break;
    case FATE_ANSWER_LOST:
        (void)table_apply(table, request->target, request->body, &answer);
        wire_silence(request, true);
        break;
    case FATE_500_AFTER:
        (void)table_apply(table, request->target, request->body, &answer);
        wire_answer(request, 500, idem_str(failed));
        break;
    case FATE_500_BEFORE:
        wire_answer(request, 500, idem_str(failed));
        break;
    case FATES:
        assert(!"no fate");
    }
    idem__buffer_free(&answer);
}

static int no_random(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    memset(buf, 1, len);
    return 0;
}

void wire_init(struct wire *wire, bool claims)
{
    memset(wire, 0, sizeof(*wire));
    table_init(&wire->table, "table");
    (void)strcpy(wire->env.table.name, "table");
    wire->env.table.index = true;
    wire->env.base.host.random = no_random;
    wire->env.base.scratch = wire->scratch;
    wire->env.base.claims = claims ? idem__claims_create() : NULL;
    idem__task_init(&wire->task, &wire->env);
    wire->now.store_ms = 1700000000000;
    wire->now.boot_ms = 5000000;
    memset(wire->now.boot_id, 'A', sizeof(wire->now.boot_id));
    wire->now.margin_ms = 2000;
}

void wire_finish(struct wire *wire)
{
    idem__task_free(&wire->task);
    idem__claims_destroy(wire->env.base.claims);
    table_finish(&wire->table);
}

void wire_pass(struct wire *wire, int64_t ms)
{
    wire->now.store_ms += ms;
    wire->now.boot_ms += ms;
}

void wire_start(struct wire *wire, struct idem_op *op)
{
    wire->task.base.op = op;
    idem__flight_start(&wire->task.base, &wire->now);
}

void wire_step(struct wire *wire, enum fate fate)
{
    wire_carry(&wire->table, &wire->task.request, fate);
    idem__flight_answered(&wire->task.base, &wire->now);
}

static void carry(struct wire *wire)
{
    enum fate fate =
        wire->requests < 64 ? wire->fates[wire->requests] : FATE_GOOD;
    size_t used = strlen(wire->log);

    wire->requests++;
    (void)snprintf(wire->log + used, sizeof(wire->log) - used, "%s ",
                   strchr(wire->task.request.target, '.') + 1);
    wire_step(wire, fate);
}

void wire_run(struct wire *wire, struct idem_op *op)
{
    static struct idem_store store = {.options = {.timeout_ms = 10000}};
    struct idem__task *task = &wire->task;

    op->store = &store; /* As idem_queue_submit() sets it. */
    memset(&op->error, 0, sizeof(op->error));
    op->has_record = false;
    op->verdict = (enum idem_verdict)0;
    op->asked_boot_ms = wire->now.boot_ms;
    wire_start(wire, op);
    while (task->base.next != IDEM__FLIGHT_DONE) {
        if (task->base.next == IDEM__FLIGHT_SEND) {
            carry(wire);
        } else {
            wire_pass(wire, task->base.pause_ms);
            idem__flight_resume(&task->base, &wire->now);
        }
    }
    idem__task_reset(task);
}

struct idem_op wire_op(enum idem_verb verb, const char *key, char who)
{
    static const struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_op op = {.verb = verb, .has_nonce = true};
    int rc;

    op.scope = idem_str("");
    op.key = idem_str(key);
    rc = idem_id(op.scope, op.key, op.id);
    assert(rc == 0);
    (void)rc;
    memset(op.nonce, who, sizeof(op.nonce));
    if (verb == IDEM_OP_BEGIN) {
        op.u.begin = request;
        op.u.begin.on_expired_lease = IDEM_RERUN;
    }
    return op;
}

void wire_free(struct idem_op *op)
{
    idem__free(op->record);
    op->record = NULL;
    op->record_room = 0;
}
