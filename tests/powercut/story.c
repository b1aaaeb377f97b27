/* What was done to a store, and what must be left of it. */
#include "story.h"

#include "cut.h"
#include "disk.h"

#include <assert.h>
#include <idem/operator.h>
#include <idem/queue.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    RESULT_MAX = 9000,
    ROUNDS = 5
};

static void must(int rc, const struct idem_error *error)
{
    if (rc != 0) {
        fprintf(stderr, "powercut: %s: %s\n", idem_error_name(rc), error->text);
        abort();
    }
}

static void key_name(size_t key, char buf[24])
{
    (void)snprintf(buf, 24, "key-%zu", key);
}

static struct story_state *add(struct story_key *key)
{
    assert(key->len < STORY_STEPS);
    key->states[key->len] = (struct story_state){.asked = disk_moment()};
    return &key->states[key->len++];
}

static void answered(struct story_state *state)
{
    state->answered = disk_moment();
    state->flushed = disk_flush_moment();
}

static struct idem_op *claim_op(size_t key)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_error error;
    struct idem_op *op;
    char name[24];

    key_name(key, name);
    request.key = idem_str(name);
    request.on_expired_lease = IDEM_HOLD;
    must(idem_op_begin(&request, &op, &error), &error);
    return op;
}

static struct idem_op *end_op(const struct idem_attempt *attempt,
                              struct story_state *state, uint64_t *seed)
{
    static const enum idem_status ends[] = {
        IDEM_STATUS_RELEASED, IDEM_STATUS_COMPLETED, IDEM_STATUS_RELEASED,
        IDEM_STATUS_FAILED,   IDEM_STATUS_UNKNOWN,
    };
    static uint8_t bytes[RESULT_MAX];
    struct idem_outcome outcome = {.status = ends[cut_random(seed) % 5]};
    struct idem_error error;
    struct idem_op *op;

    if (outcome.status == IDEM_STATUS_COMPLETED ||
        outcome.status == IDEM_STATUS_FAILED) {
        state->result_len = cut_random(seed) % RESULT_MAX;
        state->result_byte = (uint8_t)(cut_random(seed) | 1);
    }
    memset(bytes, state->result_byte, state->result_len);
    outcome.result.bytes = idem_bytes(bytes, state->result_len);
    state->status = outcome.status;
    state->fence = attempt->fence;
    must(idem_op_end(attempt, &outcome, &op, &error), &error);
    return op;
}

/* Runs @ops of the keys from @from on, in one batch or one by one. */
static void run(struct idem_queue *queue, struct story *story, size_t from,
                struct idem_op **ops, size_t len, bool together)
{
    struct idem_error error;
    size_t done = 0;
    size_t i;

    for (i = 0; i < len; i++) {
        idem_op_set_user(ops[i], &story->keys[from + i]);
        must(idem_queue_submit(queue, ops[i], &error), &error);
        while (!together && idem_queue_len(queue) > 0 &&
               idem_queue_reap(queue, -1) != NULL) {
            struct story_key *key = &story->keys[from + i];

            answered(&key->states[key->len - 1]);
            done++;
        }
    }
    for (; done < len; done++) {
        struct idem_op *op = idem_queue_reap(queue, -1);
        struct story_key *key = idem_op_user(op);

        must(idem_op_code(op), idem_op_error(op));
        answered(&key->states[key->len - 1]);
    }
}

/* One life of @len keys: claimed, then ended. */
static void live(struct idem_queue *queue, struct story *story, size_t from,
                 size_t len, bool together, uint64_t *seed)
{
    struct idem_attempt *attempts[STORY_KEYS];
    struct idem_op *ops[STORY_KEYS];
    size_t i;

    for (i = 0; i < len; i++) {
        struct story_state *state = add(&story->keys[from + i]);

        state->status = IDEM_STATUS_IN_PROGRESS;
        ops[i] = claim_op(from + i);
    }
    run(queue, story, from, ops, len, together);
    for (i = 0; i < len; i++) {
        struct story_key *key = &story->keys[from + i];

        assert(idem_op_verdict(ops[i]) == IDEM_STARTED);
        if (idem_op_take_attempt(ops[i], &attempts[i]) != 0) {
            abort();
        }
        idem_op_destroy(ops[i]);
        key->states[key->len - 1].fence = attempts[i]->fence;
    }
    for (i = 0; i < len; i++) {
        ops[i] = end_op(attempts[i], add(&story->keys[from + i]), seed);
    }
    run(queue, story, from, ops, len, together);
    for (i = 0; i < len; i++) {
        idem_op_destroy(ops[i]);
        idem_attempt_destroy(attempts[i]);
    }
}

static bool may_start(const struct story_key *key)
{
    return key->len == 0 ||
           (key->len + 2 <= STORY_STEPS &&
            key->states[key->len - 1].status == IDEM_STATUS_RELEASED);
}

/* One life of each key that may start, in a process of its own as it were: the store is
 * closed after it, which carries over the log. */
static void live_all(struct story *story, const char *url, uint64_t *seed)
{
    struct idem_queue *queue;
    struct idem_store *store;
    struct idem_error error;
    size_t from;

    must(idem_open(url, NULL, &store, &error), &error);
    must(idem_queue_create(store, &queue, &error), &error);
    for (from = 0; from < STORY_KEYS;) {
        size_t most = 1 + cut_random(seed) % 12;
        size_t len = 0;

        while (from + len < STORY_KEYS && len < most &&
               may_start(&story->keys[from + len])) {
            len++;
        }
        if (len > 0) {
            live(queue, story, from, len, (cut_random(seed) & 1) != 0, seed);
        }
        from += len + 1;
    }
    idem_queue_destroy(queue);
    idem_close(store);
}

void story_live(struct story *story, const char *url, uint64_t *seed)
{
    size_t round;

    memset(story, 0, sizeof(*story));
    for (round = 0; round < ROUNDS; round++) {
        live_all(story, url, seed);
    }
}

/* ---- What must be left ---- */

static bool is_state(const struct story_state *state,
                     const struct idem_record *record)
{
    const uint8_t *bytes = record->result.bytes.base;
    size_t i;

    if (record->status != state->status || record->fence != state->fence ||
        record->result.bytes.len != state->result_len) {
        return false;
    }
    for (i = 0; i < state->result_len; i++) {
        if (bytes[i] != state->result_byte) {
            return false;
        }
    }
    return true;
}

/* The states that @key may be in: from the last that was answered to the last
 * that was asked for. In numbers from 1; 0 is "absent". */
static void allowed(const struct story_key *key, size_t moment, bool early,
                    size_t *ret_first, size_t *ret_last)
{
    size_t i;

    *ret_first = 0;
    *ret_last = 0;
    for (i = 0; i < key->len; i++) {
        const struct story_state *state = &key->states[i];

        if ((early ? state->flushed : state->answered) <= moment) {
            *ret_first = i + 1;
        }
        if (state->asked < moment) {
            *ret_last = i + 1;
        }
    }
}

static const char *check_key(const struct story_key *key, size_t number,
                             struct idem_store *store, size_t moment,
                             bool early)
{
    struct idem_answer *answer = NULL;
    const char *fault = "a record is in a state that was never asked for";
    char name[24];
    size_t first;
    size_t last;
    int rc;

    allowed(key, moment, early, &first, &last);
    key_name(number, name);
    rc = idem_get(store, idem_str(""), idem_str(name), &answer, NULL);
    if (rc == IDEM_ENOTFOUND) {
        return first == 0 ? NULL : "what was answered is gone";
    }
    if (rc != 0) {
        return "a record cannot be read";
    }
    for (; first <= last && fault != NULL; first++) {
        if (first > 0 &&
            is_state(&key->states[first - 1], idem_answer_record(answer))) {
            fault = NULL;
        }
    }
    if (fault != NULL && first > 0) {
        fault = "what was answered is not what is there";
    }
    idem_answer_destroy(answer);
    return fault;
}

static int count_bad(void *ctx, int code, const struct idem_record *record)
{
    (void)record;
    *(unsigned *)ctx += code != 0;
    return 0;
}

const char *story_check(const struct story *story, const char *url,
                        size_t moment, bool early)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    const char *fault = NULL;
    struct idem_store *store;
    unsigned bad = 0;
    size_t i;

    if (idem_open(url, NULL, &store, NULL) != 0) {
        return "cannot open the store";
    }
    if (idem_list(store, &filter, count_bad, &bad, NULL, NULL) != 0 ||
        bad > 0) {
        fault = "there are records that cannot be read";
    }
    for (i = 0; i < STORY_KEYS && fault == NULL; i++) {
        fault = check_key(&story->keys[i], i, store, moment, early);
    }
    idem_close(store);
    return fault;
}
