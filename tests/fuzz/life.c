/* Lives of keys: the input is a list of calls to the library, over a few keys, on
 * a virtual clock. A model that knows the promises and nothing else goes along: the
 * store must give its verdicts and its codes, replay what was acknowledged byte for
 * byte, hand out fences that only grow, and show, list, count and purge what the
 * model says is there. Built twice: for the store in memory and for SQLite.
 */
#include "fuzz.h"
#include "host.h"
#include "model.h"
#include "verbs.h"

#include <idem/operator.h>

#ifndef STORE
#define STORE "memory:"
#endif

enum {
    KEYS = 3,
    SLOTS = 4,
    CALLS_MAX = 200
};

/* A record that was taken out, and may come back. */
struct copy {
    bool there;
    struct model model;
    struct idem_answer *answer;
};

struct life {
    struct host host;
    struct idem_store *store;
    int64_t now_ms; /* By the store. */
    struct model models[KEYS];
    struct {
        struct idem_attempt *attempt;
        int key;
        int owner;
        int64_t lease_ms; /* Of its request; 0: not known, it was a token. */
    } slots[SLOTS];
    struct copy copies[KEYS];
    int owners; /* So many have begun. */
    struct idem_counters counters;
};

static const char *const keys[KEYS] = {"a", "b", "a\0b"};

/* ---- Names for numbers ---- */

static struct idem_slice key_of(int key)
{
    return idem_bytes(keys[key], key == 2 ? 3 : 1);
}

static struct idem_slice scope_of(int key)
{
    return idem_str(key == 1 ? "a" : "");
}

static struct idem_result result_of(int content)
{
    static const char *const bytes[CONTENTS] = {"", "done", "done\n", "x"};
    struct idem_result result = {.bytes = idem_str(bytes[content])};

    result.content_type = idem_str(content == 3 ? "text/plain" : "");
    result.meta = idem_str(content == 2 ? "exit 0\n" : "");
    result.not_kept = content == 0;
    return result;
}

static struct idem_slice fingerprint_of(int which)
{
    static const uint8_t prints[3][IDEM_FINGERPRINT_LEN] = {{0}, {1}, {2}};

    return idem_bytes(prints[which], which == 0 ? 0 : IDEM_FINGERPRINT_LEN);
}

static bool same_result(const struct idem_record *record, int content)
{
    struct idem_result want = result_of(content < 0 ? 0 : content);

    return same_bytes(record->result.bytes, want.bytes) &&
           same_bytes(record->result.content_type, want.content_type) &&
           same_bytes(record->result.meta, want.meta) &&
           record->result.not_kept == (content >= 0 && want.not_kept);
}

/* ---- Looking ---- */

static void look_at(struct life *life, int key)
{
    const struct model *m = &life->models[key];
    const struct idem_record *record;
    struct idem_answer *answer;
    int rc = idem_get(life->store, scope_of(key), key_of(key), &answer, NULL);

    must(rc == (model_counts(m, life->now_ms) ? 0 : IDEM_ENOTFOUND));
    if (rc != 0) {
        return;
    }
    record = idem_answer_record(answer);
    must(record->status == m->status && record->fence == m->fence);
    must(record->attempts == m->attempts && record->by_lease == m->by_lease);
    must(m->status == IDEM_STATUS_RELEASED ||
         m->status == IDEM_STATUS_UNKNOWN || same_result(record, m->content));
    must(record->on_expired_lease == m->policy);
    must((record->expires_ms == IDEM_NEVER) == (m->expires_ms == IDEM_NEVER));
    idem_answer_destroy(answer);
}

static int count_one(void *ctx, int code, const struct idem_record *record)
{
    must(code == 0 && record->result.bytes.len == 0);
    ++*(unsigned *)ctx;
    return 0;
}

static void look_at_all(struct life *life)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    unsigned want = 0;
    unsigned have = 0;
    int i;

    for (i = 0; i < KEYS; i++) {
        want += model_counts(&life->models[i], life->now_ms);
    }
    must(idem_list(life->store, &filter, count_one, &have, NULL, NULL) == 0);
    must(have == want);
}

static void count(struct life *life, struct tape *tape)
{
    struct idem_counters counters = IDEM_COUNTERS_INIT;

    (void)tape;
    must(idem_count(life->store, &counters, NULL) == 0);
    must(memcmp(&counters, &life->counters, sizeof(counters)) == 0);
}

/* ---- Calls ---- */

static struct claim take_claim(struct tape *tape)
{
    static const int64_t leases[] = {IDEM_LEASE_MIN_MS, 60000, IDEM_NEVER};
    unsigned bits = take_u8(tape);
    struct claim claim = {
        .policy = (bits & 1) != 0 ? IDEM_RERUN : IDEM_HOLD,
        .fingerprint = (int)((bits >> 1 & 3) % 3),
        .attempts_max = bits >> 3 & 3,
        .lease_ms = leases[(bits >> 5 & 3) % 3],
        .retention_ms = 120000,
        .expect_ms = (bits & 128) != 0 ? 1000 : 0,
    };

    if (claim.lease_ms == IDEM_NEVER) {
        claim.retention_ms = IDEM_NEVER;
    }
    return claim;
}

/* Those that follow on from a begin, beside the verdict. */
static void count_begin(struct idem_counters *counters,
                        const struct model *before, const struct model *after,
                        enum idem_verdict verdict, bool takeover)
{
    bool closed = before->status == IDEM_STATUS_IN_PROGRESS &&
                  after->status != before->status;

    counters->started += verdict == IDEM_STARTED;
    counters->takeovers += verdict == IDEM_STARTED && takeover;
    counters->replayed += verdict == IDEM_REPLAY;
    counters->busy += verdict == IDEM_BUSY;
    counters->mismatch += verdict == IDEM_MISMATCH;
    counters->unknown += closed && verdict == IDEM_UNKNOWN;
    counters->failed += closed && verdict == IDEM_FAILED;
}

static void begin(struct life *life, struct tape *tape)
{
    int key = (int)take_up_to(tape, KEYS - 1);
    unsigned slot = take_up_to(tape, SLOTS - 1);
    struct claim claim = take_claim(tape);
    struct idem_request request = IDEM_REQUEST_INIT;
    struct model *m = &life->models[key];
    struct model before = *m;
    struct idem_attempt *attempt;
    enum idem_verdict verdict;
    bool takeover = false;

    request.scope = scope_of(key);
    request.key = key_of(key);
    request.on_expired_lease = claim.policy;
    request.fingerprint = fingerprint_of(claim.fingerprint);
    request.lease_ms = claim.lease_ms;
    request.retention_ms = claim.retention_ms;
    request.expect_ms = claim.expect_ms;
    request.attempts_max = claim.attempts_max;
    must(idem_begin(life->store, &request, &attempt, NULL) == 0);
    verdict = model_begin(m, &claim, ++life->owners, life->now_ms, &takeover);
    must(attempt->verdict == verdict);
    count_begin(&life->counters, &before, m, verdict, takeover);
    if (verdict == IDEM_STARTED) {
        must(attempt->takeover == takeover);
        must(model_started(m, attempt->fence));
        must(attempt->attempts == m->attempts);
        idem_attempt_destroy(life->slots[slot].attempt);
        life->slots[slot].attempt = attempt;
        life->slots[slot].key = key;
        life->slots[slot].owner = life->owners;
        life->slots[slot].lease_ms = claim.lease_ms;
        return;
    }
    if (verdict == IDEM_REPLAY || verdict == IDEM_FAILED) {
        must(same_result(attempt->record, m->content));
    }
    if (verdict == IDEM_BUSY && m->lease_end_ms != IDEM_NEVER) {
        must(attempt->lease_left_ms == m->lease_end_ms - life->now_ms);
    }
    must(verdict != IDEM_MISMATCH || attempt->record->result_len == 0);
    idem_attempt_destroy(attempt);
}

static void end(struct life *life, struct tape *tape)
{
    unsigned slot = take_up_to(tape, SLOTS - 1);
    enum idem_status status =
        (enum idem_status)(IDEM_STATUS_COMPLETED + (int)take_up_to(tape, 3));
    int content = (int)take_up_to(tape, CONTENTS - 1);
    struct idem_attempt *attempt = life->slots[slot].attempt;
    struct idem_outcome outcome = {.status = status,
                                   .result = result_of(content)};
    struct model *m = &life->models[life->slots[slot].key];
    struct model before = *m;
    int rc;

    if (attempt == NULL) {
        return;
    }
    if (status != IDEM_STATUS_COMPLETED) {
        outcome.text = idem_str(content == 1 ? "why" : "");
    }
    rc = model_end(m, life->slots[slot].owner, status, content, life->now_ms);
    must(verb_end(attempt, &outcome) == rc);
    life->counters.lost += rc == IDEM_ELOST;
    if (memcmp(&before, m, sizeof(before)) != 0) {
        life->counters.completed += status == IDEM_STATUS_COMPLETED;
        life->counters.failed += status == IDEM_STATUS_FAILED;
        life->counters.unknown += status == IDEM_STATUS_UNKNOWN;
        life->counters.released += status == IDEM_STATUS_RELEASED;
    }
}

static void extend(struct life *life, struct tape *tape, bool renews)
{
    static const int64_t leases[] = {0, IDEM_LEASE_MIN_MS, 90000, IDEM_NEVER};
    unsigned slot = take_up_to(tape, SLOTS - 1);
    int64_t lease_ms = leases[take_up_to(tape, 3)];
    int64_t of_model = lease_ms != 0 ? lease_ms : life->slots[slot].lease_ms;
    struct idem_attempt *attempt = life->slots[slot].attempt;
    struct model *m = &life->models[life->slots[slot].key];
    int owner = life->slots[slot].owner;
    int rc;

    if (attempt == NULL) {
        return;
    }
    rc = renews ? model_renew(m, owner, of_model, life->now_ms)
                : model_expire(m, owner, life->now_ms);
    must(rc == (renews ? idem_renew(attempt, lease_ms, NULL)
                       : idem_expire(attempt, NULL)));
    life->counters.lost += rc == IDEM_ELOST;
    if (rc == 0 && m->lease_end_ms != IDEM_NEVER) {
        int64_t left_ms = idem_attempt_lease_left_ms(attempt);

        must(left_ms == 0 || left_ms <= m->lease_end_ms - life->now_ms);
    }
}

static void renew(struct life *life, struct tape *tape)
{
    extend(life, tape, /* renews= */ true);
}

static void expire(struct life *life, struct tape *tape)
{
    extend(life, tape, /* renews= */ false);
}

static void resolve(struct life *life, struct tape *tape)
{
    static const enum idem_status statuses[] = {IDEM_STATUS_COMPLETED,
                                                IDEM_STATUS_FAILED,
                                                IDEM_STATUS_RELEASED};
    int key = (int)take_up_to(tape, KEYS - 1);
    enum idem_status status = statuses[take_up_to(tape, 2)];
    int content = (int)take_up_to(tape, CONTENTS - 1);
    struct model *m = &life->models[key];
    uint64_t fence = m->fence + (take_u8(tape) == 255 ? 1 : 0);
    struct model before = *m;
    struct idem_outcome outcome = {.status = status};
    int rc;

    if (fence == 0) {
        fence = 1;
    }
    outcome.result = result_of(content);
    outcome.text = idem_str("reason");
    rc = model_resolve(m, fence, status, content, life->now_ms);
    must(idem_resolve(life->store, scope_of(key), key_of(key), fence,
                      idem_str("ann"), &outcome, /* flags= */ 0, NULL) == rc);
    life->counters.resolved += memcmp(&before, m, sizeof(before)) != 0;
}

static void pass_time(struct life *life, struct tape *tape)
{
    static const int64_t steps[] = {1, 999, 2000, 59999, 120000, 86400000};
    int64_t ms = steps[take_up_to(tape, 5)];

    host_pass(&life->host, ms);
    life->now_ms += ms;
    if (take_bool(tape)) {
        host_set_wall(&life->host, take_bool(tape) ? 1 : HOST_WALL_MS * 2);
    }
}

static void purge(struct life *life, struct tape *tape)
{
    uint64_t purged = 0;
    uint64_t want = 0;
    int i;

    (void)tape;
    for (i = 0; i < KEYS; i++) {
        if (life->models[i].stored &&
            !model_counts(&life->models[i], life->now_ms)) {
            life->models[i].stored = false;
            want++;
        }
    }
    must(idem_purge(life->store, 0, &purged, NULL) == 0);
    must(purged == want);
    life->counters.purged += purged;
}

/* The attempt as another process would have it. */
static void carry_token(struct life *life, struct tape *tape)
{
    unsigned from = take_up_to(tape, SLOTS - 1);
    unsigned to = take_up_to(tape, SLOTS - 1);
    char token[IDEM_TOKEN_MAX];

    if (life->slots[from].attempt == NULL || from == to) {
        return;
    }
    must(idem_attempt_token(life->slots[from].attempt, token) == 0);
    idem_attempt_destroy(life->slots[to].attempt);
    life->slots[to] = life->slots[from];
    life->slots[to].lease_ms = 0;
    must(idem_attempt_from_token(life->store, token, &life->slots[to].attempt,
                                 NULL) == 0);
}

static void take_copy(struct life *life, struct tape *tape)
{
    int key = (int)take_up_to(tape, KEYS - 1);
    struct copy *copy = &life->copies[key];

    if (copy->there) {
        idem_answer_destroy(copy->answer);
    }
    copy->model = life->models[key];
    copy->there = idem_get(life->store, scope_of(key), key_of(key),
                           &copy->answer, NULL) == 0;
}

static void put_copy_back(struct life *life, struct tape *tape)
{
    int key = (int)take_up_to(tape, KEYS - 1);
    const struct copy *copy = &life->copies[key];
    struct model *m = &life->models[key];
    bool want;
    bool added;

    if (!copy->there) {
        return;
    }
    want =
        (!model_counts(m, life->now_ms) ||
         (m->status == IDEM_STATUS_RELEASED && copy->model.fence > m->fence)) &&
        model_counts(&copy->model, life->now_ms);
    must(idem_import(life->store, idem_answer_record(copy->answer), &added,
                     NULL) == 0);
    must(added == want);
    if (added) {
        uint64_t max = m->fence_max;
        uint64_t above = m->stored ? m->fence + 1 : 0;

        *m = copy->model;
        if (m->fence < above) {
            m->fence = above;
            m->owner = NOBODY; /* Whoever had the old one. */
        }
        m->fence_max = max > m->fence ? max : m->fence;
    }
}

/* As often as they are to come. */
static void (*const calls_of[16])(struct life *life, struct tape *tape) = {
    begin,       begin,     begin,         end,       end,       end,
    renew,       expire,    resolve,       pass_time, pass_time, purge,
    carry_token, take_copy, put_copy_back, count,
};

/* ---- From the beginning to the end ---- */

static void open_store(struct life *life)
{
    static const struct idem_counters zero = IDEM_COUNTERS_INIT;
    struct idem_open_options options;

    memset(life, 0, sizeof(*life));
    life->counters = zero;
    host_init(&life->host);
    life->now_ms = HOST_WALL_MS;
    options = host_options(&life->host, /* sleeping= */ true);
    must(idem_open(STORE, &options, &life->store, NULL) == 0);
}

static void close_store(struct life *life)
{
    int i;

    for (i = 0; i < KEYS; i++) {
        if (life->copies[i].there) {
            idem_answer_destroy(life->copies[i].answer);
        }
    }
    for (i = 0; i < SLOTS; i++) {
        idem_attempt_destroy(life->slots[i].attempt);
    }
    idem_close(life->store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct life life;
    struct tape tape = tape_of(data, len);
    int calls;
    int i;

    fuzz_enter_folder();
    open_store(&life);
    for (calls = 0; tape.left > 0 && calls < CALLS_MAX; calls++) {
        calls_of[take_up_to(&tape, 15)](&life, &tape);
        for (i = 0; i < KEYS; i++) {
            look_at(&life, i);
        }
    }
    look_at_all(&life);
    count(&life, &tape);
    close_store(&life);
    (void)fuzz_clean_folder();
    fuzz_leave_folder();
    return 0;
}
