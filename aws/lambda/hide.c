/* Hides messages of SQS that came while another delivery works on them, or that must run
 * again after a pause.
 *
 * Such a message is an item failure. The queue delivers it again after its visibility
 * timeout, and counts that as a receive: work that takes longer than a few timeouts would
 * send its own duplicate to the dead-letter queue. So we hide the message until the
 * attempt in flight can be over: until its lease ends, or for half of the time that the
 * work has taken so far, if that is longer, because an owner that renews its lease may go
 * on for hours. We never show it earlier than the queue would, unless the record says when
 * its next attempt may begin. */
#include "aws/lambda/batch.h"

#include "aws/client/settings.h"
#include "aws/lambda/lambda.h"
#include "aws/sqs/queue.h"
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"

#include <idem/http.h>

#include <stdio.h>

/* SQS hides a message for at most 12 hours since it was received. */
#define HIDE_MAX_MS ((int64_t)11 * 3600 * 1000)
/* For an owner whose lease never ends. */
#define HIDE_ENDLESS_MS ((int64_t)15 * 60 * 1000)
/* Send no requests for so long after a failure that may pass. */
#define PAUSE_MS 60000

struct idem__lambda_hider {
    char arn[256];
    struct idem__sqs_queue queue;
    bool is_open;
    int64_t visibility_ms; /* The queue's own. */
    int64_t not_before_ms; /* Monotonic; after a failure. */
    bool told;             /* The log has the reason. */
};

/* ---- Whether, and how long --------------------------------------------- */

static bool hides(const struct batch *b)
{
    /* Lambda passes credentials to a function in one of these. Do not use other ones, of a
     * person who tries a handler, on a queue that an event names. */
    static const char *const credentials[] = {
        "AWS_ACCESS_KEY_ID", "AWS_CONTAINER_CREDENTIALS_FULL_URI", NULL};

    return (b->rule->shape == IDEM__LAMBDA_QUEUE ||
            b->rule->shape == IDEM__LAMBDA_FIFO) &&
           idem__aws_env_first(&idem__aws_env_process, credentials) != NULL;
}

static void hide_for(struct item *item, int64_t ms)
{
    item->hide_until_ms =
        idem__mono_ms() + (ms < HIDE_MAX_MS ? ms : HIDE_MAX_MS);
}

void idem__batch_hide_pause(const struct batch *b, struct item *item,
                            int64_t ms)
{
    if (ms > 0 && hides(b)) {
        item->paused = true;
        hide_for(item, ms);
    }
}

void idem__batch_hide_busy(const struct batch *b, struct item *item)
{
    const struct idem_attempt *busy = item->attempt;
    int64_t half_ms = idem_http_attempt_age(busy) / 2;
    int64_t ms = busy->lease_left_ms + 1000;

    if (busy->record->retry) {
        idem__batch_hide_pause(b, item, busy->lease_left_ms);
    } else if (hides(b)) {
        ms = busy->record->lease_end_ms == IDEM_NEVER ? HIDE_ENDLESS_MS : ms;
        hide_for(item, ms < half_ms ? half_ms : ms);
    }
}

/* ---- The queue --------------------------------------------------------- */

static void close_queue(struct idem__lambda_hider *h)
{
    if (h->is_open) {
        idem__sqs_queue_close(&h->queue);
        h->is_open = false;
    }
}

void idem__lambda_hide_finish(struct idem_lambda *lambda)
{
    if (lambda->hider != NULL) {
        close_queue(lambda->hider);
        idem__free(lambda->hider);
        lambda->hider = NULL;
    }
}

/* The region becomes part of the host name to which we send signed requests. An event
 * source mapping has only queues of the function's own region, so an event that names
 * another one does not come from a mapping. */
static bool is_own_region(const char *region)
{
    static const char *const names[] = {"AWS_REGION", "AWS_DEFAULT_REGION",
                                        NULL};
    const char *own = idem__aws_env_first(&idem__aws_env_process, names);

    return own != NULL && strcmp(own, region) == 0;
}

/* Opens the queue of @arn, and keeps it open: a function mostly has one queue. */
static int open_queue(struct idem__lambda_hider *h, struct idem_slice arn,
                      int64_t deadline_ms, struct idem_error *error)
{
    char region[64];
    char account[32];
    char name[96];
    struct idem__sqs_place place = {.queue = name, .region = region};
    struct idem__sqs_attributes attributes;
    int rc;

    if (h->is_open && strlen(h->arn) == arn.len &&
        memcmp(h->arn, arn.base, arn.len) == 0) {
        return 0;
    }
    close_queue(h);
    if (arn.len >= sizeof(h->arn) ||
        (arn.len > 0 && memchr(arn.base, '\0', arn.len) != NULL)) {
        return idem__error(error, IDEM_EINVALID, "the ARN is not valid");
    }
    (void)snprintf(h->arn, sizeof(h->arn), "%.*s", (int)arn.len,
                   arn.len == 0 ? "" : (const char *)arn.base);
    if (!idem__sqs_read_arn(h->arn, region, account, name)) {
        return idem__error(error, IDEM_EINVALID,
                           "eventSourceARN does not name a queue");
    }
    if (!is_own_region(region)) {
        return idem__error(error, IDEM_EINVALID,
                           "eventSourceARN names a queue of another region");
    }
    place.account = account;
    rc = idem__sqs_queue_open(&place, deadline_ms, &h->queue, error);
    if (rc != 0) {
        return rc;
    }
    h->is_open = true;
    rc = idem__sqs_queue_read(&h->queue, deadline_ms, &attributes, error);
    if (rc != 0) {
        close_queue(h);
        return rc;
    }
    h->visibility_ms = attributes.visibility_s * 1000;
    return 0;
}

/* ---- The messages ------------------------------------------------------ */

struct round {
    struct idem_slice receipts[IDEM__SQS_BATCH];
    int64_t seconds[IDEM__SQS_BATCH];
    size_t len;
};

static int send(struct idem__lambda_hider *h, struct round *round,
                int64_t deadline_ms, struct idem_error *error)
{
    struct idem__sqs_call call = {.body = {NULL, 0, 0, false}};
    int rc = 0;

    if (round->len > 0) {
        idem__sqs_visibility(&call.body, h->queue.url, round->receipts,
                             round->seconds, round->len);
        rc = idem__sqs_ask(&h->queue,
                           IDEM__SQS_TARGET("ChangeMessageVisibilityBatch"),
                           &call, deadline_ms, error);
        idem__sqs_call_finish(&call);
        round->len = 0;
    }
    return rc;
}

static struct idem_slice text_at(const struct batch *b, const struct item *item,
                                 const char *place)
{
    const struct idem__tree *event = &b->lambda->tree;

    return idem__lambda_text_of(event,
                                idem__lambda_find(event, item->unit.at, place));
}

/* Adds @item if it must be hidden for longer than the queue does, or is in a pause. */
static void add(const struct batch *b, const struct idem__lambda_hider *h,
                struct round *round, const struct item *item)
{
    struct idem_slice receipt = text_at(b, item, "receiptHandle");
    int64_t ms = item->hide_until_ms - idem__mono_ms();

    ms = item->paused && ms < 0 ? 0 : ms;
    if ((item->paused || ms > h->visibility_ms) && receipt.len > 0 &&
        receipt.len <= IDEM__SQS_RECEIPT_MAX) {
        round->receipts[round->len] = receipt;
        round->seconds[round->len++] = (ms + 999) / 1000;
    }
}

static int hide_all(const struct batch *b, struct idem__lambda_hider *h,
                    int64_t deadline_ms, struct idem_error *error)
{
    struct round round = {.len = 0};
    size_t i;
    int rc = 0;

    for (i = 0; rc == 0 && i < b->len; i++) {
        if (b->items[i].hide_until_ms != 0) {
            add(b, h, &round, &b->items[i]);
        }
        if (round.len == IDEM__SQS_BATCH) {
            rc = send(h, &round, deadline_ms, error);
        }
    }
    return rc == 0 ? send(h, &round, deadline_ms, error) : rc;
}

/* Logs, once, why messages cannot be hidden. The batch goes on, and the queue shows them
 * when it would. After a failure that a retry cannot mend, never tries again. */
static void tell(const struct batch *b, struct idem__lambda_hider *h,
                 const struct idem_error *error)
{
    bool final = error->code == IDEM_EDENIED || error->code == IDEM_EINVALID;

    h->not_before_ms = final ? INT64_MAX : idem__mono_ms() + PAUSE_MS;
    if (!h->told) {
        h->told = true;
        idem__lambda_log(
            b->lambda->now, "WARN", NULL,
            "cannot hide a message that must wait, so it returns and counts "
            "towards the dead-letter queue: %s; allow the function "
            "sqs:ChangeMessageVisibility",
            error->text);
    }
}

static const struct item *first_to_hide(const struct batch *b)
{
    size_t i;

    for (i = 0; i < b->len; i++) {
        if (b->items[i].hide_until_ms != 0) {
            return &b->items[i];
        }
    }
    return NULL;
}

void idem__batch_hide(struct batch *b)
{
    const struct idem_lambda_options *options = b->lambda->options;
    const struct item *item = first_to_hide(b);
    struct idem__lambda_hider *h = b->lambda->hider;
    struct idem_error error = {0};
    int64_t bound_ms =
        idem__lambda_left_ms(b->lambda->now) - IDEM__LAMBDA_STOP_MS;
    int64_t deadline_ms;

    if (item == NULL || bound_ms <= 0) {
        return;
    }
    if (h == NULL) {
        h = idem__zalloc(sizeof(*h));
        b->lambda->hider = h;
    }
    if (h == NULL || idem__mono_ms() < h->not_before_ms) {
        return;
    }
    if (bound_ms > options->store_timeout_ms) {
        bound_ms = options->store_timeout_ms;
    }
    deadline_ms = idem__mono_ms() + bound_ms;
    error.code =
        open_queue(h, text_at(b, item, "eventSourceARN"), deadline_ms, &error);
    if (error.code == 0) {
        error.code = hide_all(b, h, deadline_ms, &error);
    }
    if (error.code != 0) {
        tell(b, h, &error);
    }
}
