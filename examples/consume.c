/* Handles the messages of an SQS queue in C, up to 32 of them at a time from one
 * thread, each once:
 *
 *     consume QUEUE STORE
 *
 * It ends when the queue of messages is empty. The work of a message "fail" fails.
 */
#include <idem/consume.h>
#include <idem/queue.h>

#include <poll.h>
#include <stdio.h>

enum {
    HOLD = 32,
    AGAIN_MS = 1000,
    FAILED_MS = 2000,
};

static struct idem_consumer *consumer;
static struct idem_queue *queue;
static unsigned done, replayed, failed;

/* Does the work. Returns false if it failed and had no effect. */
static bool handle(const struct idem_message *message)
{
    return message->body.len != 4 || memcmp(message->body.base, "fail", 4) != 0;
}

/* If the store cannot be asked now, the consumer returns the message later. */
static void submit(struct idem_message *message, struct idem_op *op)
{
    struct idem_error error;

    idem_op_set_user(op, message);
    if (idem_queue_submit(queue, op, &error) != 0) {
        idem_op_destroy(op);
        idem_consumer_keep(consumer, message, AGAIN_MS);
    }
}

static void begin(struct idem_message *message)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_error error;
    struct idem_op *op;

    request.key = message->id;
    request.on_expired_lease = IDEM_RERUN;
    if (idem_op_begin(&request, &op, &error) != 0) {
        idem_consumer_keep(consumer, message, AGAIN_MS);
        return;
    }
    message->user = NULL; /* Nothing was done yet. */
    submit(message, op);
}

/* The attempt is ours: does the work, and submits its outcome. After the last
 * receive that the queue allows nobody tries again, so a person must see a failure. */
static void work(struct idem_message *message, struct idem_op *begun)
{
    static const char says_done[] = "done", says_failed[] = "failed";
    uint64_t max = idem_consumer_info(consumer)->max_receives;
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};
    struct idem_attempt *attempt;
    struct idem_error error;
    struct idem_op *op;

    if (idem_op_take_attempt(begun, &attempt) != 0) {
        idem_consumer_keep(consumer, message, AGAIN_MS);
        return;
    }
    message->user = (void *)(uintptr_t)says_done;
    if (!handle(message)) {
        outcome.status = max != 0 && message->receives >= max
                             ? IDEM_STATUS_FAILED
                             : IDEM_STATUS_RELEASED;
        outcome.text = idem_str("the message asks for a failure");
        message->user = (void *)(uintptr_t)says_failed;
    }
    if (idem_op_end(attempt, &outcome, &op, &error) != 0) {
        idem_consumer_keep(consumer, message, AGAIN_MS);
    } else {
        submit(message, op);
    }
    idem_attempt_destroy(attempt);
}

/* The outcome is on record. */
static void finish(struct idem_message *message)
{
    if (strcmp(message->user, "done") == 0) {
        done++;
        idem_consumer_delete(consumer, message);
    } else {
        failed++;
        idem_consumer_leave(consumer, message, FAILED_MS);
    }
}

static void begun(struct idem_message *message, struct idem_op *op)
{
    switch (idem_op_verdict(op)) {
    case IDEM_STARTED:
        work(message, op);
        break;
    case IDEM_REPLAY:
        replayed++;
        idem_consumer_delete(consumer, message);
        break;
    case IDEM_BUSY:
        idem_consumer_keep(consumer, message, AGAIN_MS);
        break;
    default: /* Failed, unknown, or another message with this key. */
        failed++;
        idem_consumer_leave(consumer, message, FAILED_MS);
    }
}

static void answered(struct idem_op *op)
{
    struct idem_message *message = idem_op_user(op);

    if (idem_error_kind(idem_op_code(op)) == IDEM_KIND_RETRY &&
        message->user != NULL) {
        submit(message, op); /* Submitting an op again is always safe. */
        return;
    }
    if (idem_op_code(op) != 0) {
        idem_consumer_keep(consumer, message, AGAIN_MS);
    } else if (message->user != NULL) {
        finish(message);
    } else {
        begun(message, op);
    }
    idem_op_destroy(op);
}

/* Waits until the queue of messages or the queue of ops has something to do. */
static void wait_for_news(void)
{
    struct pollfd news[] = {
        {.fd = idem_consumer_fd(consumer), .events = POLLIN},
        {.fd = idem_queue_fd(queue), .events = POLLIN},
    };

    (void)poll(news, 2, 50);
}

/* Returns 0, or 1 after printing the error. */
static int consume(void)
{
    struct idem_error error;
    bool stopped = false;

    while (!stopped || idem_consumer_busy(consumer) > 0) {
        struct idem_message *message;
        struct idem_op *op;

        if (idem_consumer_work(consumer, &error) != 0) {
            fprintf(stderr, "consume: %s\n", error.text);
            return 1;
        }
        while ((message = idem_consumer_next(consumer)) != NULL) {
            begin(message);
        }
        while ((op = idem_queue_reap(queue, /* timeout_ms= */ 0)) != NULL) {
            answered(op);
        }
        if (!stopped && idem_consumer_is_empty(consumer)) {
            idem_consumer_stop(consumer);
            stopped = true;
        }
        wait_for_news();
    }
    printf("%u done, %u replayed, %u failed\n", done, replayed, failed);
    return 0;
}

int main(int argc, char **argv)
{
    struct idem_consumer_options options = IDEM_CONSUMER_OPTIONS_INIT;
    struct idem_store *store;
    struct idem_error error;
    int status = 1;

    if (argc != 3) {
        fprintf(stderr, "usage: consume QUEUE STORE\n");
        return 64;
    }
    options.queue = argv[1];
    options.hold_max = HOLD;
    options.wait_ms = 1000;
    if (idem_open(argv[2], NULL, &store, &error) != 0) {
        fprintf(stderr, "consume: %s\n", error.text);
        return 69;
    }
    if (idem_queue_create(store, &queue, &error) == 0 &&
        idem_consumer_open(&options, &consumer, &error) == 0) {
        status = consume();
    } else {
        fprintf(stderr, "consume: %s\n", error.text);
    }
    idem_consumer_close(consumer);
    idem_queue_destroy(queue);
    idem_close(store);
    return status;
}
