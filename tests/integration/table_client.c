/* The table in memory that the unit tests use (tests/lib/table.h), for table.py:
 *
 *     table_client answer        each line of stdin, "TARGET BODY", is applied;
 *                                its answer is a line "STATUS BODY"
 *     table_client make SEED N   at least N lines "TARGET BODY", as ops of any
 *                                kind make them; they find a table that answers
 *                                as this one does
 */
#include "base/heap.h"
#include "wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    KEYS = 4,       /* At a time; */
    KEY_EVERY = 60, /* so many requests later one is another. */
    HELD = 6,
    RESULT_MAX = 900000,
    DAY_MS = 86400000,
};
#define START_MS 4102444800000 /* In 2100: no server deletes by a ttl. */

static struct wire wire;
static uint64_t state;
static uint8_t bytes[RESULT_MAX];

static unsigned below(unsigned n)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % n;
}

/* ---- Answers ---- */

static int answer_all(void)
{
    struct idem__buffer answer = {.len = 0};
    struct table table;
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;

    table_init(&table, "table");
    while ((len = getline(&line, &cap, stdin)) > 0) {
        char *body = strchr(line, ' ');
        int status;

        if (body == NULL) {
            return 64;
        }
        *body++ = '\0';
        status = table_apply(&table, line,
                             idem_bytes(body, (size_t)(line + len - 1 - body)),
                             &answer);
        printf("%d %.*s\n", status, (int)answer.len, (const char *)answer.base);
        (void)fflush(stdout);
    }
    free(line);
    idem__buffer_free(&answer);
    table_finish(&table);
    return 0;
}

/* ---- Ops ---- */

/* An attempt that was started. */
static struct held {
    char key[16];
    uint8_t nonce[16];
    uint64_t fence; /* 0: none. */
} held[HELD];

static void print_request(const struct idem__aws_request *request)
{
    printf("%s %.*s\n", request->target, (int)request->body.len,
           (const char *)request->body.base);
}

/* Returns the fence of the record, if there is one. */
static uint64_t run(struct idem_op *op)
{
    static struct idem_store store = {.options = {.timeout_ms = 10000}};
    struct idem__task *task = &wire.task;
    uint64_t fence;

    op->store = &store;
    op->asked_boot_ms = wire.now.boot_ms;
    task->base.op = op;
    idem__flight_start(&task->base, &wire.now);
    while (task->base.next != IDEM__FLIGHT_DONE) {
        if (task->base.next == IDEM__FLIGHT_SEND) {
            print_request(&task->request);
            wire_carry(&wire.table, &task->request, FATE_GOOD);
            wire.requests++;
            idem__flight_answered(&task->base, &wire.now);
        } else {
            idem__flight_resume(&task->base, &wire.now);
        }
    }
    idem__task_reset(task);
    fence = op->has_record ? op->record->fence : 0;
    idem__free(op->record);
    op->record = NULL;
    return fence;
}

static struct idem_op make_op(enum idem_verb verb, const char *key)
{
    struct idem_op op = {.verb = verb, .has_nonce = true};
    size_t i;

    op.scope = idem_str("");
    op.key = idem_str(key);
    if (idem_id(op.scope, op.key, op.id) != 0) {
        abort();
    }
    for (i = 0; i < sizeof(op.nonce); i++) {
        op.nonce[i] = (uint8_t)below(256);
    }
    return op;
}

/* Text that packs well, or bytes that cannot be packed. */
static struct idem_slice choose_bytes(void)
{
    static const unsigned most[] = {1, 80, 600, 3000, 9000, 20000, RESULT_MAX};
    size_t len = below(most[below(below(30) == 0 ? 7 : 6)]);
    bool text = below(2) == 0;
    size_t i;

    for (i = 0; i < len; i++) {
        bytes[i] = (uint8_t)(text ? 'a' + i % 7 : below(256));
    }
    return idem_bytes(bytes, len);
}

static void begin(const char *key)
{
    static const struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_op op = make_op(IDEM_OP_BEGIN, key);
    struct held *h = &held[below(HELD)];
    uint64_t fence;

    op.u.begin = request;
    op.u.begin.on_expired_lease = below(3) == 0 ? IDEM_HOLD : IDEM_RERUN;
    op.u.begin.flags = below(4) == 0 ? IDEM_LIKELY_REPLAY : 0;
    op.u.begin.retention_ms = below(3) == 0 ? IDEM_NEVER : DAY_MS;
    if (below(4) == 0) {
        op.u.begin.input = choose_bytes();
    }
    fence = run(&op);
    if (op.error.code == 0 && op.verdict == IDEM_STARTED) {
        (void)strcpy(h->key, key);
        memcpy(h->nonce, op.nonce, sizeof(h->nonce));
        h->fence = fence;
    }
}

static void choose_outcome(struct idem_outcome *outcome)
{
    static const enum idem_status ends[] = {
        IDEM_STATUS_COMPLETED, IDEM_STATUS_COMPLETED, IDEM_STATUS_RELEASED,
        IDEM_STATUS_RELEASED,  IDEM_STATUS_FAILED,    IDEM_STATUS_UNKNOWN,
    };

    memset(outcome, 0, sizeof(*outcome));
    outcome->status = ends[below(6)];
    outcome->text = idem_str("so it is");
    if (outcome->status == IDEM_STATUS_COMPLETED ||
        outcome->status == IDEM_STATUS_FAILED) {
        outcome->result.bytes = choose_bytes();
    }
}

static void of_owner(enum idem_verb verb)
{
    const struct held *h = &held[below(HELD)];
    struct idem_op op;

    if (h->fence == 0) {
        return;
    }
    op = make_op(verb, h->key);
    memcpy(op.nonce, h->nonce, sizeof(op.nonce));
    op.fence = h->fence;
    if (verb == IDEM_OP_END) {
        choose_outcome(&op.u.end);
    }
    run(&op);
}

static void resolve(const char *key)
{
    const struct held *h = &held[below(HELD)];
    struct idem_op op = make_op(IDEM_OP_RESOLVE, key);

    op.fence = h->fence;
    op.u.resolve.who = idem_str("ann");
    choose_outcome(&op.u.resolve.outcome);
    if (op.u.resolve.outcome.status != IDEM_STATUS_UNKNOWN) {
        run(&op);
    }
}

static int show_nobody(void *ctx, int code, const struct idem_record *record)
{
    (void)ctx;
    (void)code;
    (void)record;
    return 0;
}

static void list(void)
{
    struct idem_op op = make_op(IDEM_OP_LIST, "none");

    op.u.list.filter.size = sizeof(op.u.list.filter);
    op.u.list.filter.statuses =
        below(2) == 0 ? 0 : 1u << IDEM_STATUS_IN_PROGRESS;
    op.u.list.each = show_nobody;
    op.u.list.limit = 100;
    while (!op.u.list.done) {
        run(&op);
    }
}

static void purge(void)
{
    struct idem_op op = make_op(IDEM_OP_PURGE, "none");

    op.u.purge.max = 1 + below(5);
    run(&op);
}

static void any_op(void)
{
    unsigned what = below(100);
    char key[16];

    (void)snprintf(key, sizeof(key), "k%u",
                   wire.requests / KEY_EVERY + below(KEYS));
    if (what < 45) {
        begin(key);
    } else if (what < 70) {
        of_owner(IDEM_OP_END);
    } else if (what < 78) {
        of_owner(IDEM_OP_RENEW);
    } else if (what < 84) {
        of_owner(IDEM_OP_EXPIRE);
    } else if (what < 88) {
        struct idem_op op = make_op(IDEM_OP_GET, key);

        run(&op);
    } else if (what < 94) {
        resolve(key);
    } else if (what < 96) {
        list();
    } else {
        purge();
    }
}

static void pass(void)
{
    int64_t ms = below(12) == 0 ? below(120000) : below(2000);

    ms += below(40) == 0 ? below(DAY_MS) : 0;

    wire.now.store_ms += ms;
    wire.now.boot_ms += ms;
}

static int make(uint64_t seed, unsigned n)
{
    state = seed;
    wire_init(&wire, /* claims= */ true);
    wire.now.store_ms = START_MS;
    wire.now.boot_ms = 1;
    wire.now.margin_ms = 2000;
    while (wire.requests < n) {
        any_op();
        pass();
    }
    wire_finish(&wire);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "answer") == 0) {
        return answer_all();
    }
    if (argc == 4 && strcmp(argv[1], "make") == 0) {
        return make(strtoull(argv[2], NULL, 10),
                    (unsigned)strtoul(argv[3], NULL, 10));
    }
    (void)fputs("usage: table_client answer | make SEED N\n", stderr);
    return 64;
}
