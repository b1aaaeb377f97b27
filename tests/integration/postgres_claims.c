/* postgres_claims URL ROUNDS KEYS: two connections claim the same keys at the same time,
 * many in a batch, one from the first key on and the other from the last. Prints how many
 * claims were started, found an attempt in progress, and failed. */
#include <idem/queue.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    KEYS_MAX = 64, /* A batch of the store has no more. */
};

static const char *url;
static unsigned rounds;
static unsigned keys;
static pthread_barrier_t together;

struct side {
    bool backwards;
    unsigned started;
    unsigned busy;
    unsigned failed;
};

static void fail(const char *what, const struct idem_error *error)
{
    fprintf(stderr, "postgres_claims: %s: %s\n", what, error->text);
    exit(1);
}

static void make_ops(const struct side *side, unsigned round,
                     struct idem_op *ops[KEYS_MAX])
{
    struct idem_error error;
    unsigned i;

    for (i = 0; i < keys; i++) {
        struct idem_request request = IDEM_REQUEST_INIT;
        char key[40];

        (void)snprintf(key, sizeof(key), "%u.%u", round,
                       side->backwards ? keys - 1 - i : i);
        request.key = idem_str(key);
        request.on_expired_lease = IDEM_HOLD;
        if (idem_op_begin(&request, &ops[i], &error) != 0) {
            fail("begin", &error);
        }
    }
}

static void reap(struct side *side, struct idem_queue *queue)
{
    unsigned n;

    for (n = 0; n < keys; n++) {
        struct idem_op *op = idem_queue_reap(queue, /* timeout_ms= */ -1);

        if (op == NULL || idem_op_code(op) != 0) {
            side->failed++;
        } else if (idem_op_verdict(op) == IDEM_STARTED) {
            side->started++;
        } else {
            side->busy++;
        }
        idem_op_destroy(op);
    }
}

static void *claim(void *arg)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct side *side = arg;
    struct idem_store *store;
    struct idem_queue *queue;
    struct idem_error error;
    unsigned round;

    options.timeout_ms = 30000;
    if (idem_open(url, &options, &store, &error) != 0 ||
        idem_queue_create(store, &queue, &error) != 0) {
        fail(url, &error);
    }
    for (round = 0; round < rounds; round++) {
        struct idem_op *ops[KEYS_MAX];

        make_ops(side, round, ops);
        (void)pthread_barrier_wait(&together);
        if (idem_queue_submit_all(queue, ops, keys, &error) != 0) {
            fail("submit", &error);
        }
        reap(side, queue);
    }
    idem_queue_destroy(queue);
    idem_close(store);
    return NULL;
}

int main(int argc, char **argv)
{
    struct side sides[2] = {{.backwards = false}, {.backwards = true}};
    pthread_t thread;

    if (argc != 4) {
        fprintf(stderr, "usage: postgres_claims URL ROUNDS KEYS\n");
        return 64;
    }
    url = argv[1];
    rounds = (unsigned)strtoul(argv[2], NULL, 10);
    keys = (unsigned)strtoul(argv[3], NULL, 10);
    if (keys > KEYS_MAX || pthread_barrier_init(&together, NULL, 2) != 0 ||
        pthread_create(&thread, NULL, claim, &sides[1]) != 0) {
        return 1;
    }
    (void)claim(&sides[0]);
    (void)pthread_join(thread, NULL);
    printf("%u started, %u in progress, %u failed\n",
           sides[0].started + sides[1].started, sides[0].busy + sides[1].busy,
           sides[0].failed + sides[1].failed);
    return 0;
}
