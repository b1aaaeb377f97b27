/* Records that are damaged or newer, stores that are locked, and handles that crossed a
 * fork: refused, and left as they are. */
#include "contract.h"

#include "base/hash.h"
#include "contract/store.h"
#include "heap.h"
#include "threads.h"

#include <fcntl.h>
#include <idem/operator.h>
#include <idem/queue.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Damage ---- */

/* A completed and an open record, each with an input. */
static void fill(struct fixture *f, struct idem_attempt **ret_open)
{
    struct idem_request request = claim("done");

    open_virtual(f);
    request.input = idem_str("an input");
    run(f->store, &request, "a result");
    request.key = idem_str("open");
    *ret_open = begin(f->store, &request, IDEM_STARTED);
}

struct listed {
    unsigned good;
    unsigned corrupt;
    char key[16]; /* Of the corrupt one. */
};

static int note_code(void *ctx, int code, const struct idem_record *record)
{
    struct listed *listed = ctx;

    if (code == 0) {
        listed->good++;
    } else {
        assert_code(IDEM_ECORRUPT, code);
        listed->corrupt++;
        assert_true(record->key.len < sizeof(listed->key));
        memset(listed->key, 0, sizeof(listed->key));
        memcpy(listed->key, record->key.base, record->key.len);
    }
    return 0;
}

/* Fails if a verb gets anything out of @key, or changes a stored byte. */
static void assert_refused(struct fixture *f, const char *key,
                           struct idem_attempt *owner)
{
    struct idem_request request = rerun(key);
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_outcome outcome = {.status = IDEM_STATUS_RELEASED};
    struct idem_attempt *attempt = NULL;
    struct idem_answer *answer = NULL;
    struct listed listed = {.good = 0};
    static uint8_t before[IDEM_HEAD_MAX];
    static uint8_t after[IDEM_HEAD_MAX];
    size_t len = stored_read(f, key, HEAD, before, sizeof(before));
    uint64_t purged = 0;
    int verb;

    assert_code(IDEM_ECORRUPT, idem_begin(f->store, &request, &attempt, &why));
    assert_null(attempt);
    assert_true(why.text[0] != '\0');
    assert_code(IDEM_ECORRUPT,
                idem_get(f->store, idem_str(""), idem_str(key), &answer, &why));
    assert_null(answer);
    assert_code(IDEM_ECORRUPT,
                idem_resolve(f->store, idem_str(""), idem_str(key), 1,
                             idem_str("ann"), &outcome, /* flags= */ 0, &why));
    for (verb = 0; owner != NULL && verb < VERBS; verb++) {
        assert_code(IDEM_ECORRUPT, call_verb(verb, owner));
    }
    assert_ok(idem_list(f->store, &filter, note_code, &listed, NULL, &why));
    assert_int_equal(listed.good, 1);
    assert_int_equal(listed.corrupt, 1);
    assert_string_equal(listed.key, key);
    assert_ok(idem_purge(f->store, 0, &purged, &why));
    assert_int_equal(purged, 0);
    assert_int_equal(stored_read(f, key, HEAD, after, sizeof(after)), len);
    assert_memory_equal(after, before, len);
}

/* ROW(73) A record whose head was damaged in any byte is corrupt for every verb, shown
 * as such in a list, and never overwritten or purged; put right, it is good. */
TEST(corrupt, headIsRefused)
{
    struct fixture f;
    struct idem_attempt *owner;
    struct idem_request request = claim("open");
    static uint8_t head[IDEM_HEAD_MAX];
    size_t len;
    size_t at;

    fill(&f, &owner);
    len = stored_read(&f, "open", HEAD, head, sizeof(head));
    for (at = 0; at < len; at += traits()->file ? 3 : is_durable() ? 11 : 1) {
        /* The first bytes of a head are how this test finds it in memory. */
        if (at < 4 || (at >= 20 && at < 24) || (at >= 168 && at < 184)) {
            continue;
        }
        head[at] ^= 0x40;
        stored_write(&f, "open", HEAD, head, len);
        assert_refused(&f, "open", owner);
        head[at] ^= 0x40;
    }
    stored_write(&f, "open", HEAD, head, len);
    expect(f.store, &request, IDEM_BUSY);
    assert_ok(complete(owner, "after all"));
    finish(&f);
}

/* A damaged completed record is not replayed, and long after its retention it does not
 * count as gone. */
TEST(corrupt, completedRecordIsNotReplayed)
{
    struct fixture f;
    struct idem_attempt *owner;
    struct idem_request request = claim("done");
    static uint8_t head[IDEM_HEAD_MAX];
    size_t len;

    fill(&f, &owner);
    len = stored_read(&f, "done", HEAD, head, sizeof(head));
    head[len - 1] ^= 1;
    stored_write(&f, "done", HEAD, head, len);
    assert_refused(&f, "done", NULL);
    host_pass(&f.host, 30LL * 86400000);
    assert_refused(&f, "done", NULL);
    head[len - 1] ^= 1;
    stored_write(&f, "done", HEAD, head, len);
    expect(f.store, &request, IDEM_STARTED);
    finish(&f);
}

/* ROW(68) A record of a newer version is refused with that reason, by every verb,
 * and left as it is. */
TEST(corrupt, newerRecordIsRefused)
{
    struct fixture f;
    struct idem_attempt *owner;
    struct idem_request request = claim("open");
    struct idem_attempt *attempt = NULL;
    struct idem_slice parts[2];
    static uint8_t head[IDEM_HEAD_MAX];
    uint8_t digest[IDEM__SHA256_LEN];
    uint8_t id[IDEM_ID_LEN];
    size_t len;

    fill(&f, &owner);
    len = stored_read(&f, "open", HEAD, head, sizeof(head));
    head[4] = 2;
    assert_ok(idem_id(idem_str(""), idem_str("open"), id));
    parts[0] = idem_bytes(id, sizeof(id));
    parts[1] = idem_bytes(head, len - 16);
    assert_ok(idem__sha256(parts, 2, digest));
    memcpy(head + len - 16, digest, 16);
    stored_write(&f, "open", HEAD, head, len);
    assert_refused(&f, "open", owner);
    assert_code(IDEM_ECORRUPT, idem_begin(f.store, &request, &attempt, &why));
    assert_why("newer version");
    finish(&f);
}

/* A damaged result is not replayed, nor a damaged input handed on; a list, which
 * shows neither, and the ending verbs go on. */
TEST(corrupt, bodiesAreNotGiven)
{
    static const enum part parts[] = {RESULT, INPUT};

    EACH(one, parts) {
        struct fixture f;
        struct idem_attempt *owner;
        struct idem_attempt *attempt = NULL;
        struct idem_answer *answer = NULL;
        struct idem_request request = claim("done");
        uint8_t body[64];
        size_t len;
        size_t at;

        fill(&f, &owner);
        len = stored_read(&f, "done", *one, body, sizeof(body));
        assert_int_equal(len, 8);
        for (at = 0; at < len; at++) {
            body[at] ^= 1;
            stored_write(&f, "done", *one, body, len);
            assert_code(IDEM_ECORRUPT,
                        idem_begin(f.store, &request, &attempt, &why));
            assert_code(IDEM_ECORRUPT,
                        idem_get(f.store, idem_str(""), idem_str("done"),
                                 &answer, &why));
            body[at] ^= 1;
        }
        assert_null(attempt);
        assert_int_equal(count(f.store, NULL), 2);
        stored_write(&f, "done", *one, body, len);
        expect(f.store, &request, IDEM_REPLAY);
        finish(&f);
    }
}

/* A takeover does not inherit a damaged input: the caller gets an error, and nothing
 * starts. */
TEST_VIRTUAL(corrupt, inputIsNotInherited)
{
    struct idem_request request = rerun("k");
    struct idem_attempt *attempt = NULL;
    static uint8_t head[IDEM_HEAD_MAX];
    static uint8_t after[IDEM_HEAD_MAX];
    uint8_t body[64];
    size_t head_len;
    size_t len;

    request.input = idem_str("an input");
    expect(f->store, &request, IDEM_STARTED);
    len = stored_read(f, "k", INPUT, body, sizeof(body));
    body[0] ^= 1;
    stored_write(f, "k", INPUT, body, len);
    host_pass(&f->host, 60000);
    request.input = idem_str("");
    head_len = stored_read(f, "k", HEAD, head, sizeof(head));
    assert_code(IDEM_ECORRUPT, idem_begin(f->store, &request, &attempt, &why));
    assert_null(attempt);
    assert_int_equal(stored_read(f, "k", HEAD, after, sizeof(after)), head_len);
    assert_memory_equal(after, head, head_len);
}

/* The store also finds records that were exchanged, and columns that were edited without
 * their head. */
TEST(corrupt, columnsAreNotBelieved)
{
    static const char *const edits[] = {
        "status = 2",
        "status = 9",
        "deadline = 1",
        "scope = x'41'",
        "key = x'6f70656f'",
        "head = x''",
        "head = zeroblob(70000)",
        "head = (SELECT head FROM idem_record WHERE key = x'646f6e65')",
    };

    if (!traits()->file) {
        test_skip("only a file has columns");
    }
    EACH(edit, edits) {
        struct fixture f;
        struct idem_attempt *owner;
        struct idem_attempt *attempt = NULL;
        struct idem_request request = claim("open");
        char sql[256];

        fill(&f, &owner);
        (void)snprintf(sql, sizeof(sql),
                       "UPDATE idem_record SET %s WHERE key = x'6f70656e'",
                       *edit);
        stored_sql(&f, sql);
        if (idem_begin(f.store, &request, &attempt, &why) != IDEM_ECORRUPT) {
            fail_with("not found: %s", *edit);
        }
        assert_code(IDEM_ECORRUPT, complete(owner, "x"));
        finish(&f);
    }
}

/* ---- Another process holds the lock ---- */

/* A child that holds a lock until the test lets it go. */
struct holder {
    pid_t pid;
    int told; /* The test writes to it to end the hold. */
};

static int hold_lock_file(const char *path)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char name[600];
    int fd;

    (void)snprintf(name, sizeof(name), "%s-lock", path);
    fd = open(name, O_RDWR);
    return fd >= 0 && fcntl(fd, F_SETLK, &all) == 0;
}

static int hold_transaction(const char *path)
{
    sqlite3 *db;

    return sqlite3_open(path, &db) == SQLITE_OK &&
           sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK;
}

static struct holder start_holder(struct fixture *f,
                                  int (*hold)(const char *path))
{
    struct holder holder;
    int ready[2];
    int told[2];
    char c = 0;

    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(told), 0);
    (void)fflush(NULL);
    holder.pid = fork();
    assert_true(holder.pid >= 0);
    if (holder.pid == 0) {
        (void)close(told[1]);
        c = hold(f->path) ? 'y' : 'n';
        if (write(ready[1], &c, 1) == 1) {
            (void)!read(told[0], &c, 1);
        }
        _exit(0);
    }
    (void)close(told[0]);
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    (void)close(ready[0]);
    assert_int_equal(c, 'y');
    holder.told = told[1];
    return holder;
}

static void end_holder(struct holder *holder)
{
    int status;

    (void)close(holder->told);
    assert_int_equal(waitpid(holder->pid, &status, 0), holder->pid);
}

static void open_impatient(struct fixture *f)
{
    open_real(f);
    finish(f);
    f->options.timeout_ms = 300;
    open_again(f);
}

enum {
    AT_ONCE_MS = 250, /* Less than an impatient store waits. */
    BOUND_MS = 25000, /* Less than any other, on a machine that stands still. */
    QUEUED = 100,     /* One by one they would wait longer than that. */
    TRIES = 5
};

static void assert_bounded(long long since_ms, long long at_least_ms)
{
    long long took_ms = now_ms() - since_ms;

    if (took_ms < at_least_ms) {
        fail_with("it took %lld ms", took_ms);
    }
    assert_in_time(took_ms, BOUND_MS);
}

/* ROW(39) Another process holds the store's lock: every write waits for its timeout
 * and no longer, reports that nothing was done, and has done nothing. Completed keys
 * are replayed meanwhile. Once the lock is free all is well. */
TEST(lock, boundsTheWait)
{
    struct fixture f;
    struct holder holder;
    struct idem_request done = claim("done");
    struct idem_request fresh = claim("fresh");
    struct idem_attempt *owner;
    struct idem_attempt *attempt = NULL;
    struct idem_store *second = NULL;
    struct idem_answer *answer = NULL;
    long long since_ms;
    int verb;

    if (!traits()->file) {
        test_skip("only a file has a lock");
    }
    open_impatient(&f);
    run(f.store, &done, "x");
    expect(f.store, &done, IDEM_REPLAY);
    owner = begin(f.store, &fresh, IDEM_STARTED);
    fresh = claim("fresher");
    holder = start_holder(&f, hold_lock_file);

    since_ms = now_ms();
    assert_code(IDEM_EUNAVAILABLE, idem_begin(f.store, &fresh, &attempt, &why));
    assert_bounded(since_ms, 250);
    assert_null(attempt);
    for (verb = 0; verb < VERBS; verb++) {
        since_ms = now_ms();
        assert_code(IDEM_EUNAVAILABLE, call_verb(verb, owner));
        assert_bounded(since_ms, 250);
    }
    since_ms = now_ms();
    assert_code(IDEM_EUNAVAILABLE, idem_purge(f.store, 0, NULL, &why));
    assert_bounded(since_ms, 250);
    since_ms = now_ms();
    assert_code(IDEM_EUNAVAILABLE,
                idem_open(url_of(&f), &f.options, &second, &why));
    assert_bounded(since_ms, 250);
    assert_null(second);
    since_ms = now_ms();
    expect(f.store, &done, IDEM_REPLAY);
    assert_bounded(since_ms, 0);

    end_holder(&holder);
    assert_code(IDEM_ENOTFOUND, idem_get(f.store, idem_str(""),
                                         idem_str("fresher"), &answer, &why));
    assert_int_equal(status_of(f.store, "fresh"), IDEM_STATUS_IN_PROGRESS);
    assert_ok(complete(owner, "y"));
    run(f.store, &fresh, "z");
    finish(&f);
}

/* ROW(39) The same holds if nearly all claims are new, so that none is looked up before
 * its turn: completed keys are still replayed, at first after the wait and then at
 * once. On a busy machine the test tries again. */
TEST(lock, holdsNoReplayBack)
{
    struct fixture f;
    struct holder holder;
    struct idem_request request;
    long long since_ms;
    long long took_ms = AT_ONCE_MS;
    unsigned i;

    if (!traits()->file) {
        test_skip("only a file has a lock");
    }
    open_impatient(&f);
    for (i = 0; i < 200; i++) {
        request = claim(numbered("k", i));
        run(f.store, &request, "x");
    }
    holder = start_holder(&f, hold_lock_file);
    request = claim("k7");
    since_ms = now_ms();
    expect(f.store, &request, IDEM_REPLAY);
    assert_bounded(since_ms, 0);
    for (i = 0; i < TRIES && took_ms >= AT_ONCE_MS; i++) {
        since_ms = now_ms();
        expect(f.store, &request, IDEM_REPLAY);
        took_ms = now_ms() - since_ms;
    }
    assert_in_time(took_ms, AT_ONCE_MS);
    end_holder(&holder);

    /* With the lock free all of them are replays. */
    for (i = 0; i < 200; i++) {
        request = claim(numbered("k", i));
        expect(f.store, &request, IDEM_REPLAY);
    }
    finish(&f);
}

/* ROW(39) Queued operations come back as unavailable, all of them after one wait. */
TEST(lock, boundsTheWaitOfAQueue)
{
    static int (*const holds[])(const char *path) = {hold_lock_file,
                                                     hold_transaction};

    if (!traits()->file) {
        test_skip("only a file has a lock");
    }
    EACH(hold, holds) {
        struct fixture f;
        struct holder holder;
        struct idem_queue *queue;
        struct idem_request request = claim("first");
        struct idem_op *op;
        long long since_ms;
        int i;

        open_impatient(&f);
        run(f.store, &request, "x");
        assert_ok(idem_queue_create(f.store, &queue, &why));
        holder = start_holder(&f, *hold);
        since_ms = now_ms();
        for (i = 0; i < QUEUED; i++) {
            request = claim(numbered("k", i));
            assert_ok(idem_op_begin(&request, &op, &why));
            assert_ok(idem_queue_submit(queue, op, &why));
        }
        for (i = 0; i < QUEUED; i++) {
            op = idem_queue_reap(queue, -1);
            assert_non_null(op);
            assert_code(IDEM_EUNAVAILABLE, idem_op_code(op));
            idem_op_destroy(op);
        }
        assert_bounded(since_ms, 250);
        end_holder(&holder);
        assert_int_equal(count(f.store, NULL), 1);
        request = claim("last");
        run(f.store, &request, "y");
        idem_queue_destroy(queue);
        finish(&f);
    }
}

/* If the lock is released in time, a call only waits for it. */
TEST_REAL(lock, isWaitedFor)
{
    struct holder holder;
    struct idem_request request = claim("k");
    long long since_ms;

    if (!traits()->file) {
        test_skip("only a file has a lock");
    }
    run(f->store, &request, "x");
    holder = start_holder(f, hold_lock_file);
    since_ms = now_ms();
    /* The holder dies with the lock in its hands. */
    assert_int_equal(kill(holder.pid, SIGKILL), 0);
    request = claim("other");
    run(f->store, &request, "y");
    assert_bounded(since_ms, 0);
    end_holder(&holder);
}

/* ---- After a fork ---- */

struct heritage {
    struct fixture *f;
    struct idem_attempt *attempt;
    struct idem_queue *queue;
};

static bool refused(int code, struct idem_error *error)
{
    bool good = code == IDEM_EINVALID && error->code == IDEM_EINVALID &&
                strstr(error->text, "fork") != NULL;

    memset(error, 0, sizeof(*error));
    return good;
}

/* Runs in the child. Returns the number of the first step that went wrong. */
static int use_inherited(void *ctx)
{
    struct heritage *h = ctx;
    struct idem_store *store = h->f->store;
    struct idem_request request = claim("k");
    struct idem_request other = claim("other");
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_outcome outcome = {.status = IDEM_STATUS_RELEASED};
    struct idem_attempt *attempt;
    struct idem_answer *answer;
    struct idem_queue *queue;
    struct idem_error e = {0, ""};
    struct idem_slice none = {NULL, 0};
    struct idem_op *op;
    uint64_t purged;
    size_t n = 0;
    int verb;

    if (!refused(idem_begin(store, &request, &attempt, &e), &e) ||
        !refused(idem_begin(store, &other, &attempt, &e), &e)) {
        return 1;
    }
    for (verb = 0; verb < VERBS; verb++) {
        int code = call_verb(verb, h->attempt);

        if (!refused(code, &why)) {
            return 2;
        }
    }
    if (!refused(idem_get(store, none, request.key, &answer, &e), &e) ||
        !refused(idem_list(store, &filter, note_code, &n, NULL, &e), &e) ||
        !refused(idem_purge(store, 0, &purged, &e), &e) ||
        !refused(idem_resolve(store, none, request.key, 1, none, &outcome,
                              /* flags= */ 0, &e),
                 &e) ||
        !refused(idem_expire(h->attempt, &e), &e)) {
        return 3;
    }
    if (!refused(idem_queue_create(store, &queue, &e), &e) ||
        idem_op_begin(&request, &op, &e) != 0 ||
        !refused(idem_queue_submit(h->queue, op, &e), &e) ||
        idem_queue_reap(h->queue, 5000) != NULL) {
        return 4;
    }
    idem_op_destroy(op);
    idem_attempt_destroy(h->attempt);
    idem_queue_destroy(h->queue);
    idem_close(store);
    return 0;
}

/* Runs in the child: a store that the child opens itself works. */
static int open_anew(void *ctx)
{
    struct heritage *h = ctx;
    struct idem_request request = claim("the child's");
    struct idem_request taken = claim("k");
    struct idem_attempt *attempt;
    struct idem_store *store;

    if (idem_open(url_of(h->f), NULL, &store, &why) != 0 ||
        idem_begin(store, &request, &attempt, &why) != 0 ||
        complete(attempt, "x") != 0) {
        return 1;
    }
    idem_attempt_destroy(attempt);
    if (idem_begin(store, &taken, &attempt, &why) != 0 ||
        attempt->verdict != IDEM_BUSY) {
        return 2;
    }
    idem_attempt_destroy(attempt);
    idem_close(store);
    return 0;
}

/* ROW(45) A handle that crossed fork() refuses every function, with a reason, and does
 * nothing; the parent's goes on, with or without a thread of its own. */
TEST(fork, isRefused)
{
    static const unsigned flag_sets[] = {0, IDEM_OPEN_THREAD};

    EACH(flag_set, flag_sets) {
        struct fixture f;
        struct heritage h = {&f, NULL, NULL};
        struct idem_request request = claim("k");

        open_real(&f);
        finish(&f);
        f.options.flags = *flag_set;
        open_again(&f);
        h.attempt = begin(f.store, &request, IDEM_STARTED);
        assert_ok(idem_queue_create(f.store, &h.queue, &why));
        assert_int_equal(child_run(use_inherited, &h), 0);
        assert_int_equal(count(f.store, NULL), 1);
        expect(f.store, &request, IDEM_BUSY);
        if (is_durable()) {
            assert_int_equal(child_run(open_anew, &h), 0);
            assert_int_equal(status_of(f.store, "the child's"),
                             IDEM_STATUS_COMPLETED);
        }
        assert_ok(complete(h.attempt, "by the parent"));
        expect(f.store, &request, IDEM_REPLAY);
        idem_queue_destroy(h.queue);
        finish(&f);
    }
}
