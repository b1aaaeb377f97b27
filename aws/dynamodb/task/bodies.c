/* LOAD, GET_PARTS and PUT_PARTS: read and write the bodies of an op, which are inside its
 * item, or in parts of their own. */
#include "aws/dynamodb/task/task.h"
#include "base/base64.h"
#include "base/bytes.h"
#include "contract/parts.h"
#include "core/error.h"

/* ---- Reading bodies ---- */

static struct idem__parts parts_of(const struct idem__task *task,
                                   const struct idem__transfer *transfer)
{
    return (struct idem__parts){
        .id = task->base.op->id,
        .kind = transfer->kind,
        .body = &transfer->body,
        .stored = idem_bytes(transfer->stored.base, transfer->stored_len),
        .done = transfer->done,
    };
}

/* Between our two reads another caller may have replaced the head and deleted its parts.
 * So read the head once more before it counts as damaged. */
static idem__state no_body(struct idem__task *task)
{
    if (!task->looked_again) {
        task->looked_again = true;
        return IDEM__STATE_LOOK;
    }
    return idem__flight_fail_with(
        &task->base, IDEM_ECORRUPT,
        "the record cannot be trusted: its result or input is missing, or does "
        "not match its checksum");
}

/* If the op reads an input only to write it again, its caller does not get that input, and
 * missing parts do not fail the op. */
static idem__state parts_missing(struct idem__task *task)
{
    return task->keeping != IDEM__STATE_NONE ? idem__lifetime_skip(task)
                                             : no_body(task);
}

/* Unpacks the body if it is packed, and checks it against the record. */
static int accept_body(struct idem__transfer *transfer,
                       struct idem_slice stored, uint64_t len,
                       const uint8_t digest[16], struct idem_slice *ret_bytes)
{
    *ret_bytes = stored;
    if (len > IDEM_RESULT_MAX) {
        return IDEM_ECORRUPT;
    }
    if (transfer->body.packed) {
        int rc;

        transfer->bytes.len = 0;
        rc = idem__unpack(stored, (size_t)len, &transfer->bytes);
        if (rc != 0) {
            return rc;
        }
        *ret_bytes = idem__buffer_slice(&transfer->bytes);
    }
    return idem__record_check_body(*ret_bytes, len, digest);
}

idem__state idem__get_parts_ask(struct idem__task *task)
{
    struct idem__parts parts = parts_of(task, task->moving);

    idem__request_parts_get(idem__task_out(task), &task->env->table, &parts);
    return idem__task_ask(task, IDEM__TARGET("BatchGetItem"));
}

/* Copies one part to its place in the body. False: the item is not a part that the op
 * still needs, or it is damaged. */
static bool take_part(struct idem__task *task, json_object *item)
{
    struct idem__transfer *t = task->moving;
    struct idem__parts parts = parts_of(task, t);
    struct idem_slice name;
    struct idem_slice text;
    uint8_t *to = t->stored.base;
    size_t len;
    uint32_t i;
    bool last;

    if (!json_object_is_type(item, json_type_object) ||
        idem__json_attribute(item, "id", "S", &name) != 1 ||
        idem__json_attribute(item, "body", "B", &text) != 1 ||
        !idem__parts_number(&parts, name, &i) || t->done[i] ||
        text.len > (IDEM__PART_LEN + 2) / 3 * 4) {
        return false;
    }
    last = i + 1 == t->body.parts;
    to += (size_t)i * IDEM__PART_LEN;
    if (idem__base64_read(IDEM__BASE64, text, to, &len) != 0 ||
        len > IDEM__PART_LEN || (!last && len != IDEM__PART_LEN)) {
        return false;
    }
    if (last) {
        t->stored_len = (size_t)i * IDEM__PART_LEN + len;
    }
    t->done[i] = true;
    t->left--;
    return true;
}

idem__state idem__get_parts_answered(struct idem__task *task,
                                     struct idem__answer *answer)
{
    struct idem__transfer *t = task->moving;
    json_object *list;
    uint32_t before = t->left;
    size_t n;
    size_t i;

    list = idem__task_under_table(task, answer->body, "Responses");
    n = json_object_is_type(list, json_type_array)
            ? json_object_array_length(list)
            : 0;
    for (i = 0; i < n; i++) {
        if (!take_part(task, json_object_array_get_idx(list, i))) {
            return parts_missing(task);
        }
    }
    if (t->left == 0) {
        return t->then;
    }
    if (idem__task_under_table(task, answer->body, "UnprocessedKeys") != NULL) {
        return idem__task_busy(task, t->left < before, "read the result",
                               IDEM__STATE_GET_PARTS);
    }
    /* All parts of this request have come. Request the next ones. */
    if (t->left < before &&
        before - t->left ==
            (before < IDEM__PARTS_GET ? before : (uint32_t)IDEM__PARTS_GET)) {
        return IDEM__STATE_GET_PARTS;
    }
    return parts_missing(task);
}

idem__state idem__bodies_get(struct idem__task *task, struct idem__transfer *t,
                             const struct idem__body *body, idem__state then)
{
    t->body = *body;
    t->loading = true;
    t->left = body->parts;
    t->stored_len = 0;
    t->stored.len = 0;
    memset(t->done, 0, sizeof(t->done));
    t->then = then;
    task->moving = t;
    if (idem__buffer_room(&t->stored, (size_t)body->parts * IDEM__PART_LEN) ==
        NULL) {
        return idem__flight_no_memory(&task->base);
    }
    return IDEM__STATE_GET_PARTS;
}

/* Returns NONE with the body in *@ret_bytes, or the next state, which reads its parts or
 * ends the op. */
static idem__state fetch(struct idem__task *task, struct idem__transfer *t,
                         const struct idem__body *body, uint64_t len,
                         const uint8_t digest[16], struct idem_slice *ret_bytes)
{
    struct idem_slice stored = body->stored;
    int rc;

    t->body = *body;
    if (body->place == IDEM__PLACE_APART && !t->loading) {
        task->keeping = IDEM__STATE_NONE;
        return idem__bodies_get(task, t, body, IDEM__STATE_LOAD);
    }
    if (body->place == IDEM__PLACE_APART) {
        stored = idem_bytes(t->stored.base, t->stored_len);
    }
    rc = accept_body(t, stored, len, digest, ret_bytes);
    if (rc == IDEM_ECORRUPT) {
        return no_body(task);
    }
    if (rc != 0) {
        return idem__flight_fail_with(&task->base, rc, idem_error_text(rc));
    }
    return IDEM__STATE_NONE;
}

/* Comes before any write, so that a damaged body costs no attempt. GET_PARTS leads here
 * again after each body. */
idem__state idem__load_step(struct idem__task *task)
{
    struct idem_record *given = &task->base.given;
    idem__state first = IDEM__STATE_NONE;

    if (given->result_len > 0 &&
        idem__verb_gives_result(&task->base.decision)) {
        first =
            fetch(task, &task->result, &task->found.result, given->result_len,
                  given->result_digest, &given->result.bytes);
    }
    if (first == IDEM__STATE_NONE && !task->base.decision.set_input &&
        given->input_len > 0) {
        first = fetch(task, &task->input, &task->found.input, given->input_len,
                      given->input_digest, &given->input);
    }
    return first != IDEM__STATE_NONE ? first : IDEM__STATE_ACT;
}

/* ---- Writing bodies ---- */

/* Makes the tag of a result this op's own. Two results of one fence can have the same
 * bytes: a person resolves a record, another one reopens it, and the first resolves it as
 * before. The op that reopened it may delete the parts of the first result late, and must
 * not delete those of the second by the same names. Without random numbers the tag rests
 * on fence and bytes alone. */
static void make_own(struct idem__task *task, uint8_t tag[IDEM__TAG_LEN])
{
    const struct idem_host *host = &task->env->base.host;
    size_t i;

    if (!task->has_turn &&
        host->random(host->ctx, task->turn, sizeof(task->turn)) != 0) {
        memset(task->turn, 0, sizeof(task->turn));
    }
    task->has_turn = true;
    for (i = 0; i < sizeof(task->turn); i++) {
        tag[8 + i] ^= task->turn[i];
    }
}

/* Decides where the bytes of a body go. They stay inside the item while that fits into one
 * write unit. The service bills a refused write by the size of the item in its way, so
 * each duplicate would pay for a larger item. */
static void place(struct idem__task *task, struct idem__transfer *t,
                  struct idem__body *body, struct idem_slice bytes,
                  const uint8_t tag[IDEM__TAG_LEN], int64_t ttl_ms)
{
    memset(body, 0, sizeof(*body));
    if (bytes.len == 0) {
        return;
    }
    body->place = IDEM__PLACE_INLINE;
    body->stored = bytes;
    if (!idem__layout_of(&task->env->table)->parts) {
        return; /* This layout has one item for all, and cannot pack. */
    }
    if (idem__item_size(&task->item, task->base.head.len) <= IDEM__UNIT) {
        return;
    }
    if (idem__pack(bytes, &t->stored)) {
        body->packed = true;
        body->stored = idem__buffer_slice(&t->stored);
        if (idem__item_size(&task->item, task->base.head.len) <= IDEM__UNIT) {
            return;
        }
    } else {
        t->stored.len = 0;
    }
    body->place = IDEM__PLACE_APART;
    body->parts =
        (uint32_t)((body->stored.len + IDEM__PART_LEN - 1) / IDEM__PART_LEN);
    memcpy(body->tag, tag, IDEM__TAG_LEN);
    if (t == &task->result) {
        make_own(task, body->tag);
    }
    body->ttl_ms = ttl_ms;
}

void idem__bodies_place(struct idem__task *task)
{
    const struct idem_record *next = &task->item.record;
    uint8_t tag[IDEM__TAG_LEN];

    task->item.result = task->found.result;
    task->item.input = task->found.input;
    if (!task->base.has_found || task->base.decision.set_result) {
        memset(&task->item.result, 0, sizeof(task->item.result));
    }
    if (!task->base.has_found || task->base.decision.set_input) {
        place(task, &task->input, &task->item.input, next->input, next->nonce,
              idem__input_ttl_ms(next));
    }
    if (task->base.decision.set_result) {
        idem__put_u64(tag, next->fence);
        memcpy(tag + 8, next->result_digest, 8);
        place(task, &task->result, &task->item.result, next->result.bytes, tag,
              idem__result_ttl_ms(next));
    }
    idem__lifetime_plan(task);
}

/* Called with OK alone. After a lost answer PUT_PARTS writes the same bytes under the same
 * names again, which does no harm. */
idem__state idem__put_parts_answered(struct idem__task *task,
                                     struct idem__answer *answer)
{
    struct idem__transfer *t = task->moving;
    struct idem__parts parts = parts_of(task, t);
    idem__state next = idem__parts_answered(task, &parts, t->done, &t->left,
                                            IDEM__PARTS_PUT, answer);

    t->written = next == IDEM__STATE_NONE;
    return t->written ? t->then : next;
}

idem__state idem__put_parts_ask(struct idem__task *task)
{
    struct idem__transfer *t = task->moving;
    struct idem__parts parts = parts_of(task, t);

    parts.stored = t->body.stored;
    parts.made_ms = task->base.now->store_ms;
    idem__request_parts_put(idem__task_out(task), &task->env->table, &parts);
    return idem__task_ask(task, IDEM__TARGET("BatchWriteItem"));
}

idem__state idem__bodies_put(struct idem__task *task, struct idem__transfer *t,
                             const struct idem__body *body, idem__state then)
{
    t->written = false;
    t->body = *body;
    t->left = body->parts;
    memset(t->done, 0, sizeof(t->done));
    t->then = then;
    task->moving = t;
    return IDEM__STATE_PUT_PARTS;
}

void idem__bodies_forget(struct idem__task *task)
{
    task->result.written = false;
    task->input.written = false;
    task->has_turn = false;
}

/* True if the parts of @body must be written before the head. */
static bool is_missing(const struct idem__transfer *t,
                       const struct idem__body *body)
{
    return body->place == IDEM__PLACE_APART &&
           !(t->written && memcmp(t->body.tag, body->tag, IDEM__TAG_LEN) == 0);
}

idem__state idem__bodies_store(struct idem__task *task)
{
    const struct idem_decision *decision = &task->base.decision;
    const struct idem__item *item = &task->item;

    if (decision->set_input && is_missing(&task->input, &item->input)) {
        return idem__bodies_put(task, &task->input, &item->input,
                                IDEM__STATE_ACT);
    }
    if (decision->set_result && is_missing(&task->result, &item->result)) {
        return idem__bodies_put(task, &task->result, &item->result,
                                IDEM__STATE_ACT);
    }
    return idem__lifetime_extend(task);
}
