/* Opens a consumer, and does what its caller asks of it. */
#include "aws/consume/consumer.h"

#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"

#include <stdio.h>

enum {
    VISIBILITY_MIN_MS = 2000,
    HOLD_MAX = 10000,
    KEEP_MAX_MS = 15 * 60 * 1000, /* Then next() returns it again. */
    CHECK_MS = 3000,
};

/* ---- Opening ---------------------------------------------------------------- */

static int check(const struct idem_consumer_options *options,
                 struct idem_error *error)
{
    if (options->size != sizeof(*options) || options->queue == NULL) {
        return idem__error(error, IDEM_EINVALID,
                           "consumer: the size of the options or the queue is "
                           "not set");
    }
    if (options->hold_max < 1 || options->hold_max > HOLD_MAX) {
        return idem__error(error, IDEM_EINVALID,
                           "consumer: hold_max must be 1 to %d", HOLD_MAX);
    }
    if (options->wait_ms < 0 ||
        options->wait_ms > IDEM__SQS_WAIT_MAX_S * 1000) {
        return idem__error(error, IDEM_EINVALID,
                           "consumer: the wait must be 0 to 20 s");
    }
    return 0;
}

/* True only if SQS reports that the queue does not exist. We cannot know it without the
 * permission to ask, or for a queue in another region. */
static bool is_missing(struct idem_consumer *consumer, const char *arn)
{
    struct idem__sqs_call call = {.body = {NULL, 0, 0, false}};
    char region[64], account[32], name[96];
    struct idem_error error = {0};

    if (!idem__sqs_read_arn(arn, region, account, name) ||
        strcmp(region, consumer->queue.endpoint.region) != 0) {
        return false;
    }
    idem__sqs_queue_url(&call.body, name, account);
    (void)idem__sqs_ask(&consumer->queue, IDEM__SQS_TARGET("GetQueueUrl"),
                        &call, idem__mono_ms() + CHECK_MS, &error);
    idem__sqs_call_finish(&call);
    return error.code == IDEM_ENOTFOUND;
}

static void fill_info(struct idem_consumer *consumer,
                      const struct idem__sqs_attributes *attributes)
{
    struct idem_consumer_queue *info = &consumer->info;

    (void)snprintf(consumer->dead_letter, sizeof(consumer->dead_letter), "%s",
                   attributes->dead_letter);
    info->url = consumer->queue.url;
    info->region = consumer->queue.endpoint.region;
    info->visibility_ms = attributes->visibility_s * 1000;
    info->retention_ms = attributes->retention_s * 1000;
    info->waiting = attributes->waiting;
    info->in_flight = attributes->in_flight;
    info->fifo = attributes->fifo;
    info->max_receives = (uint64_t)attributes->max_receives;
    info->dead_letter = consumer->dead_letter;
    info->dead_letter_missing = consumer->dead_letter[0] != '\0' &&
                                is_missing(consumer, consumer->dead_letter);
}

/* Raises a visibility timeout that is too short to work in. */
static void set_visibility(struct idem_consumer *consumer)
{
    int64_t ms = consumer->info.visibility_ms;

    consumer->holds.visibility_ms =
        ms < VISIBILITY_MIN_MS ? VISIBILITY_MIN_MS : ms;
}

static int open_queue(struct idem_consumer *consumer, struct idem_error *error)
{
    int64_t deadline_ms =
        idem__time_add(idem__mono_ms(), consumer->options.open_ms);
    struct idem__sqs_place place = {
        .queue = consumer->options.queue,
        .region = consumer->options.region,
        .insecure = consumer->options.insecure,
    };
    struct idem__sqs_attributes attributes;
    int rc = idem__sqs_queue_open(&place, deadline_ms, &consumer->queue, error);

    if (rc != 0) {
        return rc;
    }
    rc =
        idem__sqs_queue_read(&consumer->queue, deadline_ms, &attributes, error);
    if (rc != 0) {
        idem__sqs_queue_close(&consumer->queue);
        return rc;
    }
    fill_info(consumer, &attributes);
    set_visibility(consumer);
    return 0;
}

int idem_consumer_open(const struct idem_consumer_options *options,
                       struct idem_consumer **ret_consumer,
                       struct idem_error *ret_error)
{
    struct idem_consumer *consumer;
    int rc = check(options, ret_error);

    if (rc != 0) {
        return rc;
    }
    consumer = idem__zalloc(sizeof(*consumer));
    if (consumer == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    consumer->options = *options;
    consumer->counters.size = sizeof(consumer->counters);
    idem__host_default(&consumer->host);
    rc = open_queue(consumer, ret_error);
    consumer->options.queue = NULL; /* The caller's. */
    consumer->options.region = NULL;
    if (rc != 0) {
        idem__free(consumer);
        return rc;
    }
    *ret_consumer = consumer;
    return 0;
}

static void abort_calls(struct idem_consumer *consumer,
                        enum idem__consume_kind kind)
{
    size_t i;

    for (i = 0; i < IDEM__CONSUME_CALLS; i++) {
        struct idem__consume_call *call = &consumer->calls[i];

        if (call->kind != IDEM__CONSUME_NONE &&
            (kind == IDEM__CONSUME_NONE || call->kind == kind)) {
            idem__aws_abort(consumer->queue.client, &call->sqs.request);
        }
    }
}

void idem_consumer_close(struct idem_consumer *consumer)
{
    size_t i;

    if (consumer == NULL) {
        return;
    }
    abort_calls(consumer, IDEM__CONSUME_NONE);
    while (idem__aws_reap(consumer->queue.client) != NULL) {
    }
    for (i = 0; i < IDEM__CONSUME_CALLS; i++) {
        idem__sqs_call_finish(&consumer->calls[i].sqs);
    }
    while (consumer->holds.first != NULL) {
        idem__holds_remove(&consumer->holds, consumer->holds.first);
    }
    idem__sqs_queue_close(&consumer->queue);
    idem__free(consumer);
}

/* ---- Working ---------------------------------------------------------------- */

/* Drops messages that have returned to the queue, and after a stop gives back those that
 * are not begun, also those that came since. */
static void tidy(struct idem_consumer *consumer, int64_t now_ms)
{
    size_t lost = idem__holds_sweep(&consumer->holds, now_ms);

    if (lost > 0) {
        consumer->counters.lost += lost;
        idem__consume_comes_back(consumer, now_ms);
    }
    if (!consumer->stopped) {
        return;
    }
    consumer->counters.given_back +=
        idem__holds_give_back(&consumer->holds, now_ms);
    if (!consumer->aborted &&
        idem__holds_count(&consumer->holds, IDEM__HOLD_GIVEN) == 0) {
        consumer->aborted = true;
        abort_calls(consumer, IDEM__CONSUME_RECEIVE);
    }
}

static void take_answers(struct idem_consumer *consumer)
{
    struct idem__aws_request *request;

    idem__aws_work(consumer->queue.client);
    while ((request = idem__aws_reap(consumer->queue.client)) != NULL) {
        idem__consume_take(consumer, request->user, idem__mono_ms());
    }
}

int idem_consumer_work(struct idem_consumer *consumer,
                       struct idem_error *ret_error)
{
    int64_t now_ms;

    take_answers(consumer);
    now_ms = idem__mono_ms();
    tidy(consumer, now_ms);
    idem__consume_send(consumer, now_ms);
    take_answers(consumer);
    return consumer->why.code == 0 ? 0
                                   : idem__error(ret_error, consumer->why.code,
                                                 "%s", consumer->why.text);
}

/* ---- Messages --------------------------------------------------------------- */

static struct idem__hold *hold_of(struct idem_message *message)
{
    return (struct idem__hold *)(void *)message;
}

struct idem_message *idem_consumer_next(struct idem_consumer *consumer)
{
    struct idem__hold *hold =
        consumer->stopped ? NULL
                          : idem__holds_next(&consumer->holds, idem__mono_ms());

    return hold == NULL ? NULL : &hold->message;
}

void idem_consumer_delete(struct idem_consumer *consumer,
                          struct idem_message *message)
{
    (void)consumer;
    idem__hold_delete(hold_of(message), idem__mono_ms());
}

void idem_consumer_leave(struct idem_consumer *consumer,
                         struct idem_message *message, int64_t ms)
{
    struct idem__hold *hold = hold_of(message);
    int64_t now_ms = idem__mono_ms();

    consumer->counters.left++;
    idem__consume_comes_back(consumer, ms < 0 ? hold->visible_ms : now_ms + ms);
    consumer->counters.given_back +=
        idem__holds_leave(&consumer->holds, hold_of(message), idem__mono_ms(),
                          ms);
}

void idem_consumer_keep(struct idem_consumer *consumer,
                        struct idem_message *message, int64_t ms)
{
    int64_t jitter_ms;

    ms = ms < 0 ? 0 : ms > KEEP_MAX_MS ? KEEP_MAX_MS : ms;
    jitter_ms = ms / 8 + 50;
    jitter_ms =
        (int64_t)(idem__consume_random(consumer) % (uint64_t)(jitter_ms + 1));
    consumer->counters.kept++;
    idem__hold_keep(hold_of(message), idem__mono_ms(), ms, jitter_ms);
}

/* ---- The rest --------------------------------------------------------------- */

const struct idem_consumer_queue *idem_consumer_info(
    const struct idem_consumer *consumer)
{
    return &consumer->info;
}

void idem_consumer_pause(struct idem_consumer *consumer, bool paused)
{
    consumer->paused = paused;
}

void idem_consumer_stop(struct idem_consumer *consumer)
{
    consumer->stopped = true;
}

const char *idem_consumer_trouble(const struct idem_consumer *consumer)
{
    return consumer->trouble.code == 0 ? NULL : consumer->trouble.text;
}

size_t idem_consumer_busy(const struct idem_consumer *consumer)
{
    return consumer->holds.len +
           idem__consume_under_way(consumer, IDEM__CONSUME_NONE);
}

bool idem_consumer_is_empty(const struct idem_consumer *consumer)
{
    return consumer->empty && consumer->holds.len == 0;
}

void idem_consumer_count(const struct idem_consumer *consumer,
                         struct idem_consumer_counters *ret_counters)
{
    *ret_counters = consumer->counters;
}

int idem_consumer_fd(const struct idem_consumer *consumer)
{
    return idem__aws_fd(consumer->queue.client);
}

int64_t idem_consumer_due_ms(const struct idem_consumer *consumer)
{
    int64_t now_ms = idem__mono_ms();
    int64_t due_ms = idem__holds_due_ms(&consumer->holds, now_ms);
    int64_t client_ms = idem__aws_due_ms(consumer->queue.client);

    /* The last answer that work() took, or a message that was let go since then, may have
     * made room that no request uses yet. */
    if (idem__consume_may_receive(consumer, now_ms)) {
        return now_ms;
    }
    if (!consumer->stopped && !consumer->paused &&
        consumer->receive_ms > now_ms && consumer->receive_ms < due_ms) {
        due_ms = consumer->receive_ms;
    }
    return client_ms < due_ms ? client_ms : due_ms;
}

void idem_consumer_wait(struct idem_consumer *consumer, int64_t ms)
{
    int64_t until_ms = idem__time_add(idem__mono_ms(), ms);
    int64_t due_ms = idem_consumer_due_ms(consumer);

    idem__aws_wait(consumer->queue.client,
                   due_ms < until_ms ? due_ms : until_ms);
}
