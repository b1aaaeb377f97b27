/* An order in DynamoDB tables and its record, in one transaction.
 *
 *     $ export STORE='dynamodb://idem?region=eu-west-1'
 *     $ aws dynamodb put-item --table-name shop \
 *           --item '{"id": {"S": "stock-lamp"}, "left": {"N": "10"}}'
 *     $ order "$STORE" shop request-42 lamp 3
 *     order-5f0c...: 3 of lamp
 *     $ order "$STORE" shop request-42 lamp 3     # again, after a time-out
 *     order-5f0c...: 3 of lamp
 *
 * An order is two writes: an item of its own, and fewer lamps in stock. Each run
 * makes up another id for the order, so that only idem prevents a second order. One
 * TransactWriteItems writes order, stock and record: whenever this program is killed
 * and whichever answer is lost, the tables have all of them or none. Run it again
 * until it answers.
 *
 * With --in-two-steps the key is claimed first, as for work that has to be done
 * before it is known what to write, and completed together with the writes.
 *
 * Build: cc order.c $(pkg-config --cflags --libs idem-aws)
 *
 * Exit status: 0 ordered, now or before; 1 refused, and nothing happened; 64 usage;
 * 65 the key is that of another order; 75 try again later.
 */
#include <idem/dynamodb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    EXIT_USAGE = 64,
    EXIT_MISMATCH = 65,
    EXIT_AGAIN = 75,
    WRITES = 2
};

struct order {
    const char *table;
    const char *key;
    const char *item;
    long count;
    char id[40]; /* Another one in each run. */
    char receipt[256];
    char texts[WRITES][1024];
    struct idem_slice writes[WRITES];
};

/* Prints on stderr why the program gives no receipt. */
static int say(const char *what, const char *why, int status)
{
    (void)fprintf(stderr, "order: %s: %s\n", what, why);
    return status;
}

static int say_error(const struct idem_error *error)
{
    return say("no order", error->text,
               idem_error_kind(error->code) == IDEM_KIND_RETRY ? EXIT_AGAIN
                                                               : EXIT_FAILURE);
}

/* Names are copied into the JSON below as they are. */
static int is_plain(const char *name)
{
    return name[0] != '\0' && strlen(name) <= 200 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789._-") == strlen(name);
}

/* The writes of an order, as entries of TransactItems. */
static int write_order(struct order *o)
{
    unsigned long long random[2];
    size_t i;

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return -1;
    }
    (void)snprintf(o->id, sizeof(o->id), "order-%016llx%016llx", random[0],
                   random[1]);
    (void)snprintf(o->receipt, sizeof(o->receipt), "%s: %ld of %s\n", o->id,
                   o->count, o->item);
    (void)snprintf(o->texts[0], sizeof(o->texts[0]),
                   "{\"Put\":{\"TableName\":\"%s\",\"Item\":{"
                   "\"id\":{\"S\":\"%s\"},\"key\":{\"S\":\"%s\"},"
                   "\"item\":{\"S\":\"%s\"},\"count\":{\"N\":\"%ld\"}}}}",
                   o->table, o->id, o->key, o->item, o->count);
    (void)
        snprintf(o->texts[1], sizeof(o->texts[1]),
                 "{\"Update\":{\"TableName\":\"%s\","
                 "\"Key\":{\"id\":{\"S\":\"stock-%s\"}},"
                 "\"UpdateExpression\":\"SET #left = #left - :count\","
                 "\"ConditionExpression\":\"#left >= :count\","
                 "\"ExpressionAttributeNames\":{\"#left\":\"left\"},"
                 "\"ExpressionAttributeValues\":{\":count\":{\"N\":\"%ld\"}}}}",
                 o->table, o->item, o->count);
    for (i = 0; i < WRITES; i++) {
        o->writes[i] = idem_str(o->texts[i]);
    }
    return 0;
}

/* Covers item and count, so that another order under the same key is refused. */
static int fingerprint_of(const struct order *o,
                          uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    struct idem_slice parts[] = {idem_str(o->item),
                                 idem_bytes(&o->count, sizeof(o->count))};

    return idem_fingerprint(parts, 2, idem_str(NULL), ret_fingerprint);
}

static int refused(const struct idem_dynamodb_committed *commit)
{
    return say("no order",
               commit->refused == 2 ? "not enough in stock" : commit->text,
               EXIT_FAILURE);
}

/* Tells the customer what any verdict but STARTED means. */
static int look_at_verdict(const struct order *o,
                           const struct idem_attempt *attempt)
{
    switch (attempt->verdict) {
    case IDEM_REPLAY:
        return EXIT_SUCCESS;
    case IDEM_MISMATCH:
        return say(o->key, "this key is that of another order", EXIT_MISMATCH);
    default:
        return say(o->key, idem_verdict_name(attempt->verdict), EXIT_AGAIN);
    }
}

/* Claim, order, completion: one request. */
static int order_at_once(struct idem_store *store, const struct order *o,
                         const struct idem_request *request,
                         struct idem_attempt **ret_attempt)
{
    struct idem_dynamodb_committed commit = IDEM_DYNAMODB_COMMITTED_INIT;
    struct idem_result result = {.bytes = idem_str(o->receipt)};
    struct idem_error error;

    if (idem_dynamodb_commit(store, request, &result, o->writes, WRITES,
                             ret_attempt, &commit, &error) != 0) {
        return say_error(&error);
    }
    if (commit.committed) {
        return EXIT_SUCCESS;
    }
    return commit.refused != 0 ? refused(&commit)
                               : look_at_verdict(o, *ret_attempt);
}

/* The claim first, then the order with its completion. */
static int order_in_two_steps(struct idem_store *store, const struct order *o,
                              const struct idem_request *request,
                              struct idem_attempt **ret_attempt)
{
    struct idem_dynamodb_committed commit = IDEM_DYNAMODB_COMMITTED_INIT;
    struct idem_result result = {.bytes = idem_str(o->receipt)};
    struct idem_error error;

    if (idem_begin(store, request, ret_attempt, &error) != 0) {
        return say_error(&error);
    }
    if ((*ret_attempt)->verdict != IDEM_STARTED) {
        return look_at_verdict(o, *ret_attempt);
    }
    if (idem_dynamodb_complete_with(*ret_attempt, &result, o->writes, WRITES,
                                    &commit, &error) != 0) {
        return error.code == IDEM_ELOST ? say(o->key, error.text, EXIT_AGAIN)
                                        : say_error(&error);
    }
    if (commit.committed) {
        return EXIT_SUCCESS;
    }
    /* Nothing was written: the key is free for another try. */
    if (idem_release(*ret_attempt, idem_str("refused"), &error) != 0) {
        return say_error(&error);
    }
    return refused(&commit);
}

static int take_order(struct idem_store *store, const struct order *o,
                      int in_two_steps)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    uint8_t fingerprint[IDEM_FINGERPRINT_LEN];
    struct idem_attempt *attempt = NULL;
    int status;

    if (fingerprint_of(o, fingerprint) != 0) {
        return say("no order", "out of memory", EXIT_AGAIN);
    }
    request.key = idem_str(o->key);
    request.fingerprint = idem_bytes(fingerprint, sizeof(fingerprint));
    /* An attempt that died has written nothing, so it may always run again. */
    request.on_expired_lease = IDEM_RERUN;
    request.attempts_max = 0;
    request.lease_ms = 5000;
    status = in_two_steps ? order_in_two_steps(store, o, &request, &attempt)
                          : order_at_once(store, o, &request, &attempt);
    /* The first caller and a replay get the same receipt. */
    if (status == EXIT_SUCCESS) {
        (void)fwrite(attempt->record->result.bytes.base, 1,
                     attempt->record->result.bytes.len, stdout);
    }
    idem_attempt_destroy(attempt);
    return status;
}

int main(int argc, char **argv)
{
    int in_two_steps = argc > 1 && strcmp(argv[1], "--in-two-steps") == 0;
    struct order order = {.table = NULL};
    struct idem_store *store;
    struct idem_error error;
    char **args = argv + in_two_steps;
    char *end = NULL;
    int status;

    if (argc - in_two_steps != 6 || !is_plain(args[2]) || !is_plain(args[3]) ||
        !is_plain(args[4]) || (order.count = strtol(args[5], &end, 10)) <= 0 ||
        *end != '\0') {
        return say("usage", "order [--in-two-steps] STORE TABLE KEY ITEM COUNT",
                   EXIT_USAGE);
    }
    order.table = args[2];
    order.key = args[3];
    order.item = args[4];
    if (write_order(&order) != 0) {
        return say("no order", "cannot read random bytes", EXIT_AGAIN);
    }
    if (idem_open(args[1], /* options= */ NULL, &store, &error) != 0) {
        return say_error(&error);
    }
    status = take_order(store, &order, in_two_steps);
    idem_close(store);
    return status;
}
