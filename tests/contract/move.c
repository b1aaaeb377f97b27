/* A store that is moved to another place, or filled from one. */
#include "contract.h"

#include <idem/limit.h>
#include <idem/operator.h>
#include "contract/move.h"
#include "contract/store.h"

static struct idem_move look(struct idem_store *store)
{
    struct idem_move move = {0};

    assert_ok(idem__move_get(store, &move, &why));
    return move;
}

static struct idem_move state(const struct idem_move *was,
                              enum idem_move_state wanted, const char *place)
{
    struct idem_move move = *was;

    move.state = wanted;
    memset(move.id, wanted == IDEM_MOVE_NONE ? 0 : 7, sizeof(move.id));
    (void)snprintf(move.place, sizeof(move.place), "%s", place);
    move.marked_ms = wanted == IDEM_MOVE_NONE ? 0 : was->store_ms;
    return move;
}

static void set(struct idem_store *store, enum idem_move_state wanted,
                const char *place)
{
    struct idem_move was = look(store);
    struct idem_move move = state(&was, wanted, place);

    assert_ok(idem__move_set(store, &was, &move, &why));
    assert_int_equal(look(store).state, wanted);
}

/* Waits until no handle acts on the state before the move. */
static void settle(struct fixture *f)
{
    host_pass(&f->host, look(f->store).settles_ms);
}

static void expect_refused(int code, const char *text)
{
    assert_int_equal(code, IDEM_ECONFIG);
    assert_non_null(strstr(why.text, text));
}

static int try_begin(struct idem_store *store,
                     const struct idem_request *request)
{
    struct idem_attempt *attempt = NULL;
    int rc = idem_begin(store, request, &attempt, &why);

    idem_attempt_destroy(attempt);
    return rc;
}

static int try_limit(struct idem_store *store, int64_t at_ms)
{
    struct idem_limit_request limit = IDEM_LIMIT_INIT;
    struct idem_limited limited;

    limit.name = idem_str("calls");
    limit.subject = idem_str("ann");
    limit.request = idem_str("1");
    limit.max = 5;
    limit.per_ms = IDEM_LIMIT_HOUR;
    limit.at_ms = at_ms;
    return idem_limit(store, &limit, &limited, &why);
}

static int try_reopen(struct idem_store *store, const char *key)
{
    return idem_reopen(store, idem_str(""), idem_str(key), fence_of(store, key),
                       idem_str("ann"), idem_str("again"), &why);
}

static int try_import(struct idem_store *store, struct idem_store *from,
                      const char *key)
{
    const struct idem_record *record = get(from, key);
    int rc = idem_import(store, record, NULL, &why);

    return rc;
}

/* Nothing begins in a store that was left, by any handle, whatever it has read before: no new
 * work, no takeover, no replay, no look for an attempt that is gone, no count of a request,
 * no record that a person reopens. The message names the new store. */
TEST(move, nothingBeginsInAStoreThatWasLeft)
{
    struct fixture f;
    struct fixture other;
    struct idem_request fresh = claim("fresh");
    struct idem_request open = rerun("open");
    struct idem_request done = claim("done");
    struct idem_request gone = claim("gone");
    bool limits = traits()->layout == NULL;
    struct idem_store *handle;
    struct idem_store
        *claimer; /* Learns of the move by its claim, and not before. */
    int64_t limited_ms = 0;

    gone.join_fence = UINT64_MAX;
    open_virtual(&f);
    open_virtual(&other);
    handle = handle_open(&f, &f.options);
    claimer = handle_open(&f, &f.options);
    run(f.store, &done, "x");
    expect(handle, &open, IDEM_STARTED);
    expect(claimer, &done, IDEM_REPLAY);
    run(other.store, &fresh, "x");
    expect(handle, &done, IDEM_REPLAY);
    expect(handle, &gone, IDEM_RELEASED);
    if (limits) {
        limited_ms = store_ms(f.store);
        assert_ok(try_limit(handle, limited_ms));
    }
    set(f.store, IDEM_MOVE_LEFT, "sqlite:/srv/new.db");
    settle(&f);
    if (limits) {
        expect_refused(try_limit(handle, limited_ms), "was moved");
    }
    host_pass(&f.host, 3600000);

    expect_refused(try_begin(claimer, &fresh), "sqlite:/srv/new.db");
    expect_refused(try_begin(f.store, &fresh), "sqlite:/srv/new.db");
    expect_refused(try_begin(f.store, &open), "sqlite:/srv/new.db");
    expect_refused(try_begin(f.store, &done), "sqlite:/srv/new.db");
    expect_refused(try_begin(handle, &fresh), "sqlite:/srv/new.db");
    expect_refused(try_begin(handle, &done), "sqlite:/srv/new.db");
    expect_refused(try_begin(handle, &gone), "sqlite:/srv/new.db");
    expect_refused(try_reopen(f.store, "done"), "sqlite:/srv/new.db");
    expect_refused(try_import(f.store, other.store, "fresh"), "was moved");
    if (limits) {
        expect_refused(try_limit(f.store, store_ms(f.store)), "was moved");
        expect_refused(try_limit(handle, store_ms(f.store)), "was moved");
    }
    assert_int_equal(count(f.store, NULL), 2);

    /* Control: the other store, which nobody left. */
    expect(other.store, &fresh, IDEM_REPLAY);
    expect(other.store, &done, IDEM_STARTED);
    handle_close(&f, claimer);
    handle_close(&f, handle);
    finish(&other);
    finish(&f);
}

/* Owners go on in a store that was left, and record how their work ended. */
TEST(move, ownersEndTheirWorkInAStoreThatWasLeft)
{
    int verb;

    for (verb = 0; verb < VERBS; verb++) {
        struct fixture f;
        struct idem_request request = claim("k");
        struct idem_attempt *attempt;
        struct idem_error error;

        open_virtual(&f);
        attempt = begin(f.store, &request, IDEM_STARTED);
        set(f.store, IDEM_MOVE_LEFT, "");
        settle(&f);
        assert_int_equal(idem_renew(attempt, 0, &error), 0);
        assert_ok(call_verb(verb, attempt));
        expect_refused(try_begin(f.store, &request), "was moved");
        finish(&f);
    }
}

/* A store that is being filled takes records, but begins nothing before it has them all;
 * then its fences are above those of the store that was left. */
TEST(move, aStoreThatIsFilledOpensWhenAllIsThere)
{
    struct fixture from;
    struct fixture to;
    struct idem_request done = claim("done");
    struct idem_request fresh = claim("fresh");
    struct idem_move was;
    struct idem_move move;
    const uint64_t floor = UINT64_C(1) << 60;

    open_virtual(&from);
    open_virtual(&to);
    run(from.store, &done, "x");
    set(to.store, IDEM_MOVE_FILLING, "");
    expect_refused(try_begin(to.store, &fresh), "not complete");
    assert_ok(try_import(to.store, from.store, "done"));
    expect_refused(try_begin(to.store, &done), "not complete");

    was = look(to.store);
    move = state(&was, IDEM_MOVE_HERE, "");
    move.fence_floor = floor;
    assert_ok(idem__move_set(to.store, &was, &move, &why));
    assert_true(look(to.store).fence_floor >= floor);
    expect(to.store, &done, IDEM_REPLAY);
    expect(to.store, &fresh, IDEM_STARTED);
    if (traits()->layout == NULL) {
        assert_true(fence_of(to.store, "fresh") > floor);
    }
    finish(&to);
    finish(&from);
}

/* The mark is set only if it is still as it was read; to set the same mark again succeeds.
 * It outlives its handle. */
TEST(move, theMarkIsReplacedAsItWasRead)
{
    struct fixture f;
    struct idem_request request = claim("k");
    struct idem_move none;
    struct idem_move left;
    struct idem_move filling;

    open_virtual(&f);
    none = look(f.store);
    assert_int_equal(none.state, IDEM_MOVE_NONE);
    left = state(&none, IDEM_MOVE_LEFT, "dynamodb://orders");
    assert_ok(idem__move_set(f.store, &none, &left, &why));
    assert_ok(idem__move_set(f.store, &none, &left, &why));
    filling = state(&none, IDEM_MOVE_FILLING, "");
    assert_int_equal(idem__move_set(f.store, &none, &filling, &why),
                     IDEM_ELOST);

    if (is_durable()) {
        idem_close(f.store);
        open_again(&f);
    }
    filling = look(f.store);
    assert_int_equal(filling.state, IDEM_MOVE_LEFT);
    assert_string_equal(filling.place, "dynamodb://orders");
    assert_memory_equal(filling.id, left.id, sizeof(left.id));
    assert_true(filling.marked_ms == left.marked_ms);
    expect_refused(try_begin(f.store, &request), "dynamodb://orders");

    assert_ok(idem__move_set(f.store, &left, &none, &why));
    expect(f.store, &request, IDEM_STARTED);
    finish(&f);
}

/* A table whose keys are plain refuses the key of its mark; in other stores that is a key
 * like any other. */
TEST(move, aKeyIsNotTakenForTheMark)
{
    struct fixture f;
    struct idem_request named = claim("idem#move");
    struct idem_request request = claim("k");

    open_virtual(&f);
    if (traits()->layout != NULL) {
        assert_int_equal(try_begin(f.store, &named), IDEM_EINVALID);
    } else {
        expect(f.store, &named, IDEM_STARTED);
    }
    expect(f.store, &request, IDEM_STARTED);
    set(f.store, IDEM_MOVE_LEFT, "");
    settle(&f);
    expect_refused(try_begin(f.store, &request), "was moved");
    finish(&f);
}

/* A mark that no store can have is refused. */
TEST(move, whatCannotBeIsRefused)
{
    struct fixture f;
    struct idem_move was;
    struct idem_move move;

    open_virtual(&f);
    was = look(f.store);
    move = state(&was, IDEM_MOVE_LEFT, "two words");
    assert_int_equal(idem__move_set(f.store, &was, &move, &why), IDEM_EINVALID);
    move = state(&was, IDEM_MOVE_FILLING, "somewhere");
    assert_int_equal(idem__move_set(f.store, &was, &move, &why), IDEM_EINVALID);
    move = state(&was, IDEM_MOVE_LEFT, "");
    memset(move.id, 0, sizeof(move.id));
    assert_int_equal(idem__move_set(f.store, &was, &move, &why), IDEM_EINVALID);
    move = state(&was, IDEM_MOVE_HERE, "");
    move.fence_floor = UINT64_C(1) << 61;
    assert_int_equal(idem__move_set(f.store, &was, &move, &why), IDEM_EINVALID);
    assert_int_equal(look(f.store).state, IDEM_MOVE_NONE);
    finish(&f);
}
