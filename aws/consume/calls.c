/* The requests of a consumer: sends those that are due, and takes their answers. */
#include "aws/consume/consumer.h"

#include "base/host.h"
#include "base/pace.h"
#include "core/error.h"

#include <stdio.h>

enum {
    ANSWER_MS = 10000,    /* For an answer, after the wait of a long poll. */
    PAUSE_MS = 500,       /* After a failed receive, doubled each time, */
    PAUSE_CAP_MS = 20000, /* up to this. */
    RETRY_MS = 500,       /* Before the next request about a message. */
    KEPT_MAX = 1000,      /* Receive none while so many are KEPT. */
    ROOM_MS = 20,         /* How long a receive waits for more room. */
    RECEIPT_MS = 600000,  /* Try to delete so long after it is visible. */
};

uint64_t idem__consume_random(struct idem_consumer *consumer)
{
    uint64_t random = 0;

    if (consumer->host.random(consumer->host.ctx, &random, sizeof(random)) !=
        0) {
        random = (uint64_t)idem__mono_ns() * 0x9e3779b97f4a7c15u;
    }
    return random;
}

size_t idem__consume_under_way(const struct idem_consumer *consumer,
                               enum idem__consume_kind kind)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < IDEM__CONSUME_CALLS; i++) {
        enum idem__consume_kind is = consumer->calls[i].kind;

        n += is != IDEM__CONSUME_NONE &&
             (kind == IDEM__CONSUME_NONE || is == kind);
    }
    return n;
}

static struct idem__consume_call *free_call(struct idem_consumer *consumer)
{
    size_t i;

    for (i = 0; i < IDEM__CONSUME_CALLS; i++) {
        if (consumer->calls[i].kind == IDEM__CONSUME_NONE) {
            idem__buffer_reset(&consumer->calls[i].sqs.body, 65536);
            consumer->calls[i].len = 0;
            return &consumer->calls[i];
        }
    }
    return NULL;
}

/* Until then the queue does not count as empty. SQS counts in seconds, so allow one
 * more. */
void idem__consume_comes_back(struct idem_consumer *consumer, int64_t at_ms)
{
    enum {
        LATE_MS = 1000
    };

    if (at_ms + LATE_MS > consumer->back_ms) {
        consumer->back_ms = at_ms + LATE_MS;
    }
    consumer->empty = false;
}

/* ---- Sending ---------------------------------------------------------------- */

static void submit(struct idem_consumer *consumer,
                   struct idem__consume_call *call,
                   enum idem__consume_kind kind, const char *target,
                   int64_t now_ms, int64_t timeout_ms)
{
    size_t i;

    if (call->sqs.body.failed) {
        return; /* Memory ran out: the request stays due. */
    }
    call->kind = kind;
    call->sent_ms = now_ms;
    for (i = 0; i < call->len; i++) {
        call->holds[i]->in_call = true;
        call->serials[i] = call->holds[i]->serial;
    }
    idem__sqs_submit(&consumer->queue, target, &call->sqs, now_ms + timeout_ms);
}

/* Returns how many more messages may come, with those that are being received. */
static size_t room(const struct idem_consumer *consumer)
{
    size_t taken = idem__holds_count(&consumer->holds, IDEM__HOLD_WAITING) +
                   idem__holds_count(&consumer->holds, IDEM__HOLD_GIVEN);
    size_t i;

    for (i = 0; i < IDEM__CONSUME_CALLS; i++) {
        if (consumer->calls[i].kind == IDEM__CONSUME_RECEIVE) {
            taken += consumer->calls[i].asked;
        }
    }
    return taken < consumer->options.hold_max
               ? consumer->options.hold_max - taken
               : 0;
}

/* Makes an id for the next receive. A receive whose answer was lost is repeated with the
 * same id, which gets the same messages again. */
static void renew_attempt_id(struct idem_consumer *consumer)
{
    (void)snprintf(consumer->attempt_id, sizeof(consumer->attempt_id),
                   "%016llx%016llx",
                   (unsigned long long)idem__consume_random(consumer),
                   (unsigned long long)idem__consume_random(consumer));
}

static void send_receive(struct idem_consumer *consumer,
                         struct idem__consume_call *call, size_t max,
                         bool waits, int64_t now_ms)
{
    int64_t wait_ms = waits ? consumer->options.wait_ms : 0;
    struct idem__sqs_receive how = {
        .max = (unsigned)(max < IDEM__SQS_BATCH ? max : IDEM__SQS_BATCH),
        .wait_s = wait_ms / 1000,
        .visibility_s =
            consumer->info.visibility_ms == consumer->holds.visibility_ms
                ? -1
                : consumer->holds.visibility_ms / 1000,
    };

    if (consumer->info.fifo) {
        if (consumer->attempt_id[0] == '\0') {
            renew_attempt_id(consumer);
        }
        how.attempt_id = consumer->attempt_id;
    }
    call->asked = how.max;
    idem__sqs_receive(&call->sqs.body, consumer->queue.url, &how);
    submit(consumer, call, IDEM__CONSUME_RECEIVE,
           IDEM__SQS_TARGET("ReceiveMessage"), now_ms, wait_ms + ANSWER_MS);
}

static bool may_receive(const struct idem_consumer *consumer, int64_t now_ms)
{
    size_t under_way = idem__consume_under_way(consumer, IDEM__CONSUME_RECEIVE);
    size_t most =
        consumer->plenty && !consumer->info.fifo ? IDEM__CONSUME_RECEIVES : 1;

    return !consumer->stopped && !consumer->paused && consumer->why.code == 0 &&
           consumer->receive_ms <= now_ms && under_way < most &&
           idem__holds_count(&consumer->holds, IDEM__HOLD_KEPT) < KEPT_MAX;
}

/* True if there is room for enough messages. A receive costs the same however many it
 * returns: if one were sent for each place that becomes free, messages would come one by
 * one. */
static bool is_room_enough(struct idem_consumer *consumer, size_t room,
                           int64_t now_ms)
{
    size_t enough = (consumer->options.hold_max + 1) / 2;

    if (room >= enough || room >= IDEM__SQS_BATCH) {
        return true;
    }
    if (consumer->room_ms == 0) {
        consumer->room_ms = now_ms;
    }
    if (now_ms >= consumer->room_ms + ROOM_MS) {
        return true;
    }
    consumer->receive_ms = consumer->room_ms + ROOM_MS;
    return false;
}

bool idem__consume_may_receive(const struct idem_consumer *consumer,
                               int64_t now_ms)
{
    return may_receive(consumer, now_ms) && room(consumer) > 0 &&
           idem__consume_under_way(consumer, IDEM__CONSUME_NONE) <
               IDEM__CONSUME_CALLS;
}

static void send_receives(struct idem_consumer *consumer, int64_t now_ms)
{
    struct idem__consume_call *call;
    size_t max;

    while (may_receive(consumer, now_ms) && (max = room(consumer)) > 0 &&
           is_room_enough(consumer, max, now_ms) &&
           (call = free_call(consumer)) != NULL) {
        bool first =
            idem__consume_under_way(consumer, IDEM__CONSUME_RECEIVE) == 0;

        send_receive(consumer, call, max, first, now_ms);
        consumer->room_ms = 0;
        if (call->kind == IDEM__CONSUME_NONE) {
            return;
        }
    }
}

static void gather_receipts(const struct idem__consume_call *call,
                            struct idem_slice *receipts)
{
    size_t i;

    for (i = 0; i < call->len; i++) {
        receipts[i] = idem_str(call->holds[i]->receipt);
    }
}

static void send_deletes(struct idem_consumer *consumer, int64_t now_ms)
{
    struct idem_slice receipts[IDEM__SQS_BATCH];
    struct idem__consume_call *call;

    while ((call = free_call(consumer)) != NULL &&
           (call->len = idem__holds_to_delete(&consumer->holds, now_ms,
                                              consumer->stopped, call->holds)) >
               0) {
        gather_receipts(call, receipts);
        idem__sqs_delete(&call->sqs.body, consumer->queue.url, receipts,
                         call->len);
        submit(consumer, call, IDEM__CONSUME_DELETE,
               IDEM__SQS_TARGET("DeleteMessageBatch"), now_ms, ANSWER_MS);
        if (call->kind == IDEM__CONSUME_NONE) {
            return;
        }
    }
}

static void send_changes(struct idem_consumer *consumer, int64_t now_ms)
{
    struct idem_slice receipts[IDEM__SQS_BATCH];
    struct idem__consume_call *call;

    while ((call = free_call(consumer)) != NULL &&
           (call->len = idem__holds_to_change(&consumer->holds, now_ms,
                                              call->holds, call->seconds)) >
               0) {
        gather_receipts(call, receipts);
        idem__sqs_visibility(&call->sqs.body, consumer->queue.url, receipts,
                             call->seconds, call->len);
        submit(consumer, call, IDEM__CONSUME_CHANGE,
               IDEM__SQS_TARGET("ChangeMessageVisibilityBatch"), now_ms,
               ANSWER_MS);
        if (call->kind == IDEM__CONSUME_NONE) {
            return;
        }
    }
}

/* Sends receives last, so that there are free calls for the messages that we hold. */
void idem__consume_send(struct idem_consumer *consumer, int64_t now_ms)
{
    send_changes(consumer, now_ms);
    send_deletes(consumer, now_ms);
    send_receives(consumer, now_ms);
}

/* ---- Answers ---------------------------------------------------------------- */

static void take_messages(struct idem_consumer *consumer,
                          const struct idem__consume_call *call,
                          const struct idem__sqs_messages *messages,
                          int64_t now_ms)
{
    /* SQS hides the messages when a long poll ends, not when it was sent. */
    int64_t visible_ms = now_ms + consumer->holds.visibility_ms;
    size_t i;

    for (i = 0; i < messages->len; i++) {
        const struct idem__sqs_message *message = &messages->list[i];
        bool again;

        consumer->counters.received++;
        if (message->damaged) {
            /* Do not begin it: it comes back, and is then perhaps intact. */
            consumer->counters.damaged++;
            idem__consume_comes_back(consumer, visible_ms);
            continue;
        }
        /* Without memory for it, it comes back like a message that we let go. */
        if (idem__holds_add(&consumer->holds, message, visible_ms, &again) ==
            0) {
            consumer->counters.again += again;
        }
    }
    consumer->empty = messages->len == 0 && now_ms > consumer->back_ms;
    consumer->plenty = messages->len == call->asked;
    consumer->counters.empty += messages->len == 0;
}

/* Takes the answer of a receive. Returns -1 if it is not an answer of SQS. */
static int take_receive(struct idem_consumer *consumer,
                        struct idem__consume_call *call, int64_t now_ms)
{
    struct idem_slice answer = {call->sqs.request.answer,
                                call->sqs.request.answer_len};
    struct idem__sqs_messages messages;

    if (idem__sqs_read_messages(answer, &messages) != 0) {
        return -1;
    }
    consumer->attempt_id[0] = '\0';
    take_messages(consumer, call, &messages, now_ms);
    idem__sqs_messages_finish(&messages);
    return 0;
}

static void retry(struct idem__hold *hold, int64_t now_ms)
{
    hold->retry_ms = now_ms + RETRY_MS;
}

static void take_deleted(struct idem_consumer *consumer,
                         struct idem__hold *hold, enum idem__sqs_entry entry,
                         bool same_receipt, int64_t now_ms)
{
    switch (entry) {
    case IDEM__SQS_DONE:
        consumer->counters.deleted++;
        break;
    case IDEM__SQS_GONE:
    case IDEM__SQS_BROKEN:
        if (!same_receipt) {
            return; /* Received again meanwhile: try the new receipt. */
        }
        consumer->counters.undeleted++;
        idem__consume_comes_back(consumer, hold->visible_ms);
        break;
    case IDEM__SQS_RETRY:
        retry(hold, now_ms);
        if (now_ms < hold->visible_ms + RECEIPT_MS) {
            return;
        }
        consumer->counters.undeleted++;
        break;
    }
    idem__holds_remove(&consumer->holds, hold);
}

static void take_changed(struct idem_consumer *consumer,
                         const struct idem__consume_call *call, size_t i,
                         enum idem__sqs_entry entry, int64_t now_ms)
{
    struct idem__hold *hold = call->holds[i];
    bool same_receipt = call->serials[i] == hold->serial;

    switch (entry) {
    case IDEM__SQS_DONE:
        /* Count from when we sent the request: SQS may have begun right then. If the
         * message was received again since, the new receipt has a time of its own. */
        if (same_receipt) {
            hold->visible_ms = call->sent_ms + call->seconds[i] * 1000;
        }
        break;
    case IDEM__SQS_GONE:
    case IDEM__SQS_BROKEN:
        if (same_receipt) {
            hold->visible_ms = now_ms; /* idem__holds_sweep() handles it. */
        }
        break;
    case IDEM__SQS_RETRY:
        retry(hold, now_ms);
        return;
    }
    if (hold->state == IDEM__HOLD_SHOWING && same_receipt) {
        idem__holds_remove(&consumer->holds, hold);
    }
}

static int take_batch(struct idem_consumer *consumer,
                      struct idem__consume_call *call, int64_t now_ms)
{
    struct idem_slice answer = {call->sqs.request.answer,
                                call->sqs.request.answer_len};
    enum idem__sqs_entry entries[IDEM__SQS_BATCH];
    size_t i;

    if (idem__sqs_read_batch(answer, call->len, entries) != 0) {
        return -1;
    }
    for (i = 0; i < call->len; i++) {
        if (call->kind == IDEM__CONSUME_CHANGE) {
            take_changed(consumer, call, i, entries[i], now_ms);
        } else {
            take_deleted(consumer, call->holds[i], entries[i],
                         call->serials[i] == call->holds[i]->serial, now_ms);
        }
    }
    return 0;
}

/* Has the request repeated for each of its messages, because it failed as a whole. */
static void retry_batch(struct idem_consumer *consumer,
                        struct idem__consume_call *call, int64_t now_ms)
{
    size_t i;

    for (i = 0; i < call->len; i++) {
        if (call->kind == IDEM__CONSUME_DELETE) {
            take_deleted(consumer, call->holds[i], IDEM__SQS_RETRY,
                         /* same_receipt= */ true, now_ms);
        } else {
            retry(call->holds[i], now_ms);
        }
    }
}

static void count_request(struct idem_consumer *consumer,
                          const struct idem__consume_call *call)
{
    consumer->counters.receives += call->kind == IDEM__CONSUME_RECEIVE;
    consumer->counters.deletes += call->kind == IDEM__CONSUME_DELETE;
    consumer->counters.extensions += call->kind == IDEM__CONSUME_CHANGE;
}

static void note_failure(struct idem_consumer *consumer,
                         const struct idem__consume_call *call,
                         enum idem__sqs_result result,
                         const struct idem_error *error, int64_t now_ms)
{
    consumer->counters.failures++;
    if (result != IDEM__SQS_LATER && consumer->why.code == 0) {
        consumer->why = *error;
    }
    if (call->kind == IDEM__CONSUME_RECEIVE) {
        consumer->trouble = *error;
        consumer->receive_ms =
            now_ms + PAUSE_MS / 2 +
            idem__backoff(consumer->failed, PAUSE_MS, PAUSE_CAP_MS,
                          idem__consume_random(consumer));
        consumer->failed += consumer->failed < 16;
    }
}

static bool was_aborted(const struct idem_consumer *consumer,
                        const struct idem__consume_call *call)
{
    return consumer->aborted && call->kind == IDEM__CONSUME_RECEIVE &&
           call->sqs.request.outcome != IDEM__AWS_ANSWERED;
}

void idem__consume_take(struct idem_consumer *consumer,
                        struct idem__consume_call *call, int64_t now_ms)
{
    struct idem_error error = {0};
    enum idem__sqs_result result =
        idem__sqs_classify(&call->sqs.request, &error);
    size_t i;
    int rc = 0;

    count_request(consumer, call);
    for (i = 0; i < call->len; i++) {
        call->holds[i]->in_call = false;
    }
    if (result == IDEM__SQS_OK) {
        rc = call->kind == IDEM__CONSUME_RECEIVE
                 ? take_receive(consumer, call, now_ms)
                 : take_batch(consumer, call, now_ms);
        if (rc != 0) {
            result = IDEM__SQS_LATER;
            (void)idem__error(&error, IDEM_EUNAVAILABLE,
                              "unexpected response from SQS");
        }
    }
    if (result == IDEM__SQS_OK && call->kind == IDEM__CONSUME_RECEIVE) {
        consumer->failed = 0;
        consumer->trouble.code = 0;
    } else if (result != IDEM__SQS_OK && !was_aborted(consumer, call)) {
        note_failure(consumer, call, result, &error, now_ms);
        retry_batch(consumer, call, now_ms);
    }
    call->kind = IDEM__CONSUME_NONE;
    call->len = 0;
}
