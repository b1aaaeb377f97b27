/* Results, keys and scopes: each caller gets the recorded bytes of its own key, and of no
 * other. */
#include "contract.h"

#include <stdlib.h>

/* The bytes stay until the next call, because a test that is skipped frees nothing. */
static uint8_t *random_bytes(size_t len)
{
    static uint8_t *bytes;
    uint64_t seed = len + 1;
    size_t i;

    free(bytes);
    bytes = malloc(len + 8);
    assert_non_null(bytes);
    for (i = 0; i < len; i += 8) {
        uint64_t v = random_next(&seed);

        memcpy(bytes + i, &v, 8);
    }
    return bytes;
}

/* Random bytes of many lengths, NULs and all, come back as they were. */
TEST_VIRTUAL(result, isReplayedByteForByte)
{
    static const size_t lens[] = {0,     1,      2,      15,     16,     255,
                                  256,   1000,   4095,   4096,   4097,   65535,
                                  65536, 100000, 262144, 262145, 1 << 20};
    size_t i;

    for (i = 0; i < COUNT(lens); i++) {
        const char *key = numbered("k", i);
        uint8_t *bytes = random_bytes(lens[i]);
        size_t meta_len = lens[i] < IDEM_META_MAX ? lens[i] : IDEM_META_MAX;
        size_t type_len = lens[i] < 255 ? lens[i] : 255;
        struct idem_result result = {
            .bytes = idem_bytes(bytes, lens[i]),
            .content_type = idem_bytes(bytes, type_len),
            .meta = idem_bytes(bytes, meta_len),
        };
        struct idem_request request = claim(key);
        struct idem_attempt *attempt;
        const struct idem_record *answer;

        request.input = result.bytes;
        attempt = begin(f->store, &request, IDEM_STARTED);
        assert_ok(idem_complete(attempt, &result, &why));
        assert_slice(attempt->record->result.bytes, result.bytes);

        attempt = begin(f->store, &request, IDEM_REPLAY);
        assert_slice(attempt->record->result.bytes, result.bytes);
        assert_slice(attempt->record->result.content_type, result.content_type);
        assert_slice(attempt->record->result.meta, result.meta);
        assert_slice(attempt->record->input, request.input);
        assert_int_equal(attempt->record->result_len, lens[i]);

        answer = get(f->store, key);
        assert_slice(answer->result.bytes, result.bytes);
        assert_slice(answer->input, request.input);
    }
}

/* A caller with little memory gets the lengths of long bodies, and fetches them later. */
TEST_VIRTUAL(result, isLeftOutAboveTheCallersLimit)
{
    static const size_t lens[] = {1, 600, 1000, 1001, 5000, 300000};
    size_t i;

    for (i = 0; i < 2 * COUNT(lens); i++) {
        size_t len = lens[i / 2];
        size_t given = len <= 1000 ? len : 0;
        bool failed = i % 2 == 1;
        uint8_t *bytes = random_bytes(len);
        struct idem_result result = {.bytes = idem_bytes(bytes, len)};
        const char *key = numbered("k", i);
        struct idem_request request = claim(key);
        struct idem_attempt *attempt;

        request.input = idem_str("asked");
        request.bodies_max = 1005;
        attempt = begin(f->store, &request, IDEM_STARTED);
        assert_ok(failed ? idem_fail(attempt, idem_str("why"), &result, &why)
                         : idem_complete(attempt, &result, &why));

        attempt = begin(f->store, &request, failed ? IDEM_FAILED : IDEM_REPLAY);
        assert_int_equal(attempt->record->result_len, len);
        assert_int_equal(attempt->record->result.bytes.len, given);
        assert_int_equal(attempt->record->input_len, 5);
        assert_int_equal(attempt->record->input.len, given > 0 ? 5 : 0);

        assert_slice(get(f->store, key)->result.bytes, result.bytes);
    }
}

/* The store keeps a result up to its cap. With one byte more the record states only that the
 * work is done, and the work never runs again. */
TEST(result, becomesATombstoneAboveTheCap)
{
    static const struct {
        size_t cap;
        size_t len;
        bool kept;
    } rows[] = {
        {1000, 999, true},
        {1000, 1000, true},
        {1000, 1001, false},
        {0, 0, true},
        {0, 1, false},
        {1 << 20, 1 << 20, true},
        {1 << 20, (1 << 20) + 1, false},
    };

    EACH(row, rows) {
        struct fixture f;
        uint8_t *bytes = random_bytes(row->len);
        struct idem_result result = {
            .bytes = idem_bytes(bytes, row->len),
            .content_type = idem_str("image/png"),
            .meta = idem_str("HTTP 200"),
        };
        struct idem_request request = claim("k");
        struct idem_attempt *attempt;

        open_virtual(&f);
        finish(&f);
        f.options.result_max = row->cap;
        open_again(&f);
        attempt = begin(f.store, &request, IDEM_STARTED);
        assert_ok(idem_complete(attempt, &result, &why));
        assert_ok(idem_complete(attempt, &result, &why));
        attempt = begin(f.store, &request, IDEM_REPLAY);
        assert_int_equal(attempt->record->result.not_kept, !row->kept);
        assert_int_equal(attempt->record->result.bytes.len,
                         row->kept ? row->len : 0);
        assert_int_equal(attempt->record->result_len,
                         attempt->record->result.bytes.len);
        assert_text(attempt->record->result.content_type, "image/png");
        assert_text(attempt->record->result.meta, "HTTP 200");
        finish(&f);
    }
}

/* The caller may give a tombstone itself. */
TEST_VIRTUAL(result, mayBeATombstone)
{
    struct idem_request request = claim("k");
    struct idem_result result = {.bytes = idem_str("not this"),
                                 .not_kept = true};
    struct idem_attempt *attempt = begin(f->store, &request, IDEM_STARTED);

    assert_ok(idem_complete(attempt, &result, &why));
    attempt = begin(f->store, &request, IDEM_REPLAY);
    assert_true(attempt->record->result.not_kept);
    assert_int_equal(attempt->record->result.bytes.len, 0);
}

/* Texts of full length are kept whole. */
TEST_VIRTUAL(texts, areKeptWhole)
{
    struct idem_request request = claim("k");
    uint8_t *bytes = random_bytes(IDEM_TEXT_MAX);
    struct idem_slice text = {bytes, IDEM_TEXT_MAX};
    struct idem_attempt *attempt;

    request.owner = idem_bytes(bytes, IDEM_OWNER_MAX);
    assert_ok(
        idem_release(begin(f->store, &request, IDEM_STARTED), text, &why));
    attempt = begin(f->store, &request, IDEM_STARTED);
    assert_slice(attempt->record->history[0].owner, request.owner);
    assert_ok(idem_unknown(attempt, text, &why));
    attempt = begin(f->store, &request, IDEM_UNKNOWN);
    assert_slice(attempt->record->note, text);
    assert_slice(attempt->record->owner, request.owner);
}

/* Longer texts are truncated, because the outcome matters more than its text. */
TEST(texts, areCut)
{
    int verb;

    for (verb = 1; verb < 4; verb++) {
        struct fixture f;
        struct idem_request request = claim("k");
        uint8_t *bytes = random_bytes(IDEM_TEXT_MAX + 1);
        struct idem_slice text = {bytes, IDEM_TEXT_MAX + 1};
        struct idem_attempt *attempt;
        const struct idem_record *record;

        open_virtual(&f);
        attempt = begin(f.store, &request, IDEM_STARTED);
        assert_ok(verb == 1   ? idem_fail(attempt, text, NULL, &why)
                  : verb == 2 ? idem_release(attempt, text, &why)
                              : idem_unknown(attempt, text, &why));
        record = get(f.store, "k");
        assert_slice(verb == 1 ? record->error : record->note,
                     idem_bytes(bytes, IDEM_TEXT_MAX));
        finish(&f);
    }
}

static void assert_input(struct fixture *f, const char *want)
{
    const struct idem_record *record = get(f->store, "k");

    assert_text(record->input, want);
    assert_int_equal(record->input_len, strlen(want));
}

/* Each life of a key has its own input; a takeover keeps the old input unless it brings
 * another; no result outlives the start of a new attempt. */
TEST_VIRTUAL(input, isOfItsAttempt)
{
    struct idem_request request = rerun("k");
    struct idem_result result = {.bytes = idem_str("a result")};
    struct idem_attempt *attempt;

    request.input = idem_str("first");
    assert_ok(idem_release(begin(f->store, &request, IDEM_STARTED),
                           idem_str(""), &why));
    assert_input(f, "first");

    request.input = idem_str("second, after a release");
    expect(f->store, &request, IDEM_STARTED);
    assert_input(f, "second, after a release");
    host_pass(&f->host, 60000);
    request.input = idem_str("");
    expect(f->store, &request, IDEM_STARTED);
    assert_input(f, "second, after a release");
    host_pass(&f->host, 60000);
    request.input = idem_str("third, by a taker");
    attempt = begin(f->store, &request, IDEM_STARTED);
    assert_input(f, "third, by a taker");
    assert_ok(idem_complete(attempt, &result, &why));
    assert_input(f, "third, by a taker");

    host_pass(&f->host, 86400000);
    request.input = idem_str("");
    expect(f->store, &request, IDEM_STARTED);
    assert_input(f, "");
    assert_int_equal(stored_read(f, "k", RESULT, NULL, 0), 0);
}

/* ---- Keys and scopes ---- */

/* Keys and scopes are any bytes; similar ones are not the same. */
TEST_VIRTUAL(key, isAnyBytes)
{
    static const struct idem_slice keys[] = {
        {"k", 1},         {"k\0", 2},       {"\0k", 2},     {"\0", 1},
        {"\0\0", 2},      {"K", 1},         {" k", 2},      {"k ", 2},
        {"k\n", 2},       {"\xff\xfe", 2},  {"'", 1},       {"''", 2},
        {"\"", 1},        {"%s%n", 4},      {";--", 3},     {"\xc3\xbc", 2},
        {"u\xcc\x88", 3}, {"\xcc\x88u", 3}, {"../../x", 7}, {"k/", 2},
    };
    struct idem_answer *answer;
    size_t j;

    EACH(one, keys) {
        struct idem_request request = claim("");

        request.key = *one;
        for (j = 0; j < 2; j++) {
            request.scope = j == 0 ? idem_str("") : *one;
            run(f->store, &request, "x");
            assert_ok(
                idem_get(f->store, request.scope, request.key, &answer, &why));
            assert_slice(idem_answer_record(answer)->key, request.key);
            assert_slice(idem_answer_record(answer)->scope, request.scope);
            idem_answer_destroy(answer);
        }
    }
    assert_int_equal(count(f->store, NULL), 2 * COUNT(keys));
}

/* The longest names work, and differ in their last byte. */
TEST_VIRTUAL(key, mayBeOfFullLength)
{
    struct idem_request request = claim("");
    char name[IDEM_KEY_MAX];

    memset(name, 'x', sizeof(name));
    request.key = idem_bytes(name, sizeof(name));
    request.scope = request.key;
    run(f->store, &request, "x");
    expect(f->store, &request, IDEM_REPLAY);
    name[sizeof(name) - 1] = 'y';
    run(f->store, &request, "y");
}

/* A result of one scope never shows in another: neither under the same key, nor if scope
 * and key together make the same text. */
TEST_VIRTUAL(scope, keepsResultsApart)
{
    static const struct {
        const char *scope;
        const char *key;
    } names[] = {
        {"", "abc"}, {"a", "bc"},  {"ab", "c"}, {"abc", "abc"},
        {"bc", "a"}, {"a", "abc"}, {"A", "bc"},
    };
    size_t i;

    for (i = 0; i < COUNT(names); i++) {
        struct idem_request request = claim(names[i].key);

        request.scope = idem_str(names[i].scope);
        run(f->store, &request, numbered("result ", i));
    }
    for (i = 0; i < COUNT(names); i++) {
        struct idem_request request = claim(names[i].key);
        struct idem_attempt *attempt;

        request.scope = idem_str(names[i].scope);
        attempt = begin(f->store, &request, IDEM_REPLAY);
        assert_text(attempt->record->result.bytes, numbered("result ", i));
        assert_text(attempt->record->scope, names[i].scope);
        assert_text(attempt->record->key, names[i].key);
    }
}
