/* What passes between idem and a command that is kept running. */
#include "consume/warm.h"

#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Answers ---- */

/* An answer is a whole JSON object with the strings "id" and "outcome"; all else is a
 * line like any other. */
TEST(answer, isAnObjectWithIdAndOutcome)
{
    static const struct {
        const char *line;
        enum warm_line_kind kind;
    } rows[] = {
        {"{\"id\":\"a\",\"outcome\":\"done\"}", WARM_ANSWER},
        {" { \"outcome\" : \"fail\" , \"id\" : \"a\" } ", WARM_ANSWER},
        {"{\"id\":\"a\",\"outcome\":\"dnoe\"}", WARM_BAD},
        {"{\"id\":\"a\",\"outcome\":\"\"}", WARM_BAD},
        {"{\"id\":\"a\",\"outcome\":\"Done\"}", WARM_BAD},
        {"{\"id\":\"a\",\"outcome\":1}", WARM_NO_ANSWER},
        {"{\"id\":1,\"outcome\":\"done\"}", WARM_NO_ANSWER},
        {"{\"id\":\"a\"}", WARM_NO_ANSWER},
        {"{\"outcome\":\"done\"}", WARM_NO_ANSWER},
        {"[{\"id\":\"a\",\"outcome\":\"done\"}]", WARM_NO_ANSWER},
        {"{\"id\":\"a\",\"outcome\":\"done\"} x", WARM_NO_ANSWER},
        {"{\"id\":\"a\",\"outcome\":\"done\"", WARM_NO_ANSWER},
        {"{'id':'a','outcome':'done'}", WARM_NO_ANSWER},
        {"{\"id\":\"\xff\",\"outcome\":\"done\"}", WARM_NO_ANSWER},
        {"{", WARM_NO_ANSWER},
        {"", WARM_NO_ANSWER},
        {"done", WARM_NO_ANSWER},
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct warm_answer answer;

        assert_int_equal(warm_answer_read(idem_str(rows[i].line), &answer),
                         rows[i].kind);
        warm_answer_finish(&answer);
    }
}

/* Each outcome by its word. */
TEST(answer, hasOneOfSixOutcomes)
{
    static const enum warm_outcome all[] = {WARM_DONE,    WARM_FAIL,
                                            WARM_RETRY,   WARM_UNKNOWN,
                                            WARM_RELEASE, WARM_WORKING};
    size_t i;

    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct warm_answer answer;
        char line[80];

        (void)snprintf(line, sizeof(line),
                       "{\"id\":\"m\",\"outcome\":\"%s\",\"error\":\"why\"}",
                       warm_outcome_name(all[i]));
        assert_int_equal(warm_answer_read(idem_str(line), &answer),
                         WARM_ANSWER);
        assert_int_equal(answer.outcome, all[i]);
        assert_text(answer.id, "m");
        assert_text(answer.error, "why");
        assert_int_equal(answer.result.len, 0);
        warm_answer_finish(&answer);
    }
}

/* The result is the text that the command wrote, whatever stands around it and in it;
 * a parser would round its numbers. */
TEST(answer, keepsTheResultAsItWasWritten)
{
    static const char *const results[] = {
        "123456789012345678901234567890.10",
        "null",
        "\"}, \\\"result\\\": 1\"",
        "{\"result\": [1, {\"a\": \"]}\"}, \"\\\\\"]}",
        "[ ]",
        "-0.0",
    };
    static const char *const around[] = {
        "{\"result\":%s,\"id\":\"m\",\"outcome\":\"done\"}",
        "{\"id\":\"m\",\"outcome\":\"done\",\"result\" :\t%s }",
        "{\"x\":{\"result\":1},\"id\":\"m\", \"result\": %s ,\"outcome\":\"done\"}",
        "{\"result\":0,\"id\":\"m\",\"outcome\":\"done\",\"result\":%s}",
        "{\"y\":\"\\\"result\\\":7\",\"result\":%s,\"id\":\"m\",\"outcome\":\"done\"}",
    };
    size_t i, k;

    for (i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
        for (k = 0; k < sizeof(around) / sizeof(around[0]); k++) {
            struct warm_answer answer;
            char line[256];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            (void)snprintf(line, sizeof(line), around[k], results[i]);
#pragma GCC diagnostic pop
            assert_int_equal(warm_answer_read(idem_str(line), &answer),
                             WARM_ANSWER);
            assert_text(answer.result, results[i]);
            warm_answer_finish(&answer);
        }
    }
}

/* A fence that was given is compared; anything but a number is that of no attempt. */
TEST(answer, mayNameItsDelivery)
{
    static const struct {
        const char *line;
        bool has;
        uint64_t fence;
    } rows[] = {
        {"{\"id\":\"a\",\"outcome\":\"done\"}", false, 0},
        {"{\"id\":\"a\",\"outcome\":\"done\",\"fence\":1795451389821}", true,
         1795451389821},
        {"{\"id\":\"a\",\"outcome\":\"done\",\"fence\":\"7\"}", true, 0},
        {"{\"id\":\"a\",\"outcome\":\"done\",\"fence\":null}", true, 0},
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct warm_answer answer;

        assert_int_equal(warm_answer_read(idem_str(rows[i].line), &answer),
                         WARM_ANSWER);
        assert_int_equal(answer.has_fence, rows[i].has);
        assert_int_equal(answer.fence, rows[i].fence);
        warm_answer_finish(&answer);
    }
}

/* ---- Pipes ---- */

static void open_pipe(int ends[2])
{
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
}

/* Lines come whole, in whatever pieces they were written; the last one without its
 * newline does not come. */
TEST(reader, givesWholeLines)
{
    struct warm_reader reader = {.fd = -1};
    struct idem_slice line;
    int ends[2];

    open_pipe(ends);
    reader.fd = ends[0];
    assert_int_equal(warm_reader_move(&reader), 0);
    assert_int_equal(write(ends[1], "on", 2), 2);
    assert_int_equal(warm_reader_move(&reader), 1);
    assert_false(warm_reader_next(&reader, &line));
    assert_int_equal(write(ends[1], "e\n\ntwo\nla", 9), 9);
    assert_int_equal(warm_reader_move(&reader), 1);
    assert_true(warm_reader_next(&reader, &line));
    assert_text(line, "one");
    assert_true(warm_reader_next(&reader, &line));
    assert_int_equal(line.len, 0);
    assert_true(warm_reader_next(&reader, &line));
    assert_text(line, "two");
    assert_false(warm_reader_next(&reader, &line));
    (void)close(ends[1]);
    assert_int_equal(warm_reader_move(&reader), 0);
    assert_int_equal(reader.fd, -1);
    assert_false(warm_reader_next(&reader, &line));
    warm_reader_finish(&reader);
}

/* Writes @len bytes and a newline, reading as far as the pipe needs it. */
static void pass(struct warm_reader *reader, int to, size_t len)
{
    static char some[4096];
    size_t left = len;

    memset(some, 'x', sizeof(some));
    while (left > 0) {
        size_t n = left < sizeof(some) ? left : sizeof(some);

        assert_int_equal(write(to, some, n), n);
        left -= n;
        while (warm_reader_move(reader) > 0) {
        }
    }
    assert_int_equal(write(to, "\n", 1), 1);
    (void)warm_reader_move(reader);
}

/* A line may have as many bytes as it may have, and not one more. */
TEST(reader, refusesALineThatIsTooLong)
{
    struct idem_slice line;
    size_t more;

    for (more = 0; more < 2; more++) {
        struct warm_reader reader = {.fd = -1};
        int ends[2];

        open_pipe(ends);
        reader.fd = ends[0];
        pass(&reader, ends[1], WARM_LINE_MAX + more);
        assert_int_equal(warm_reader_next(&reader, &line), more == 0);
        assert_int_equal(reader.too_long, more != 0);
        assert_int_equal(reader.size, WARM_LINE_MAX + 1);
        (void)close(ends[1]);
        warm_reader_finish(&reader);
    }
}

/* It is known of each line whether the command has read any of it: also of one that
 * does not fit into the pipe, and after a command that left the newline before it. */
TEST(writer, knowsWhetherItsLineWasRead)
{
    static char text[200000];
    struct warm_writer writer = {.fd = -1, .line = text};
    char byte;
    int ends[2];

    memset(text, 'x', sizeof(text));
    open_pipe(ends);
    writer.fd = ends[1];
    writer.len = sizeof(text);
    warm_writer_move(&writer);
    assert_true(writer.written > 0 && writer.written < writer.len);
    assert_true(warm_writer_is_unread(&writer));
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_false(warm_writer_is_unread(&writer));
    (void)close(ends[0]);
    (void)close(ends[1]);

    open_pipe(ends);
    writer.fd = ends[1];
    assert_int_equal(write(ends[1], "\n", 1), 1);
    writer.len = 10;
    writer.written = 0;
    warm_writer_move(&writer);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_true(warm_writer_is_unread(&writer));
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_false(warm_writer_is_unread(&writer));
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* ---- Messages ---- */

/* A line is one line, whatever the body holds. */
TEST(message, isOneLine)
{
    struct idem_record record = {.key = idem_str("k"),
                                 .scope = idem_str("s\n")};
    struct idem_attempt attempt = {.fence = 7,
                                   .attempts = 2,
                                   .takeover = true,
                                   .record = &record};
    struct warm_message message = {.id = idem_str("i\"d"),
                                   .body = idem_bytes("a\n\0b", 4),
                                   .receives = 3};
    size_t len;
    char *line = warm_message_line(&message, &attempt, "t", &len);

    assert_string_equal(line,
                        "{\"id\":\"i\\\"d\",\"key\":\"k\",\"scope\":\"s\\n\","
                        "\"fence\":7,\"attempt\":2,\"takeover\":true,"
                        "\"token\":\"t\",\"attributes\":{\"receives\":3},"
                        "\"body\":\"a\\n\\u0000b\"}\n");
    assert_int_equal(len, strlen(line));
    free(line);
    message.group = idem_str("g");
    message.body = idem_bytes("\xff", 1);
    line = warm_message_line(&message, &attempt, "t", &len);
    assert_non_null(strstr(line,
                           "\"attributes\":{\"receives\":3,\"group\":\"g\"},"
                           "\"body\":null,\"body_hex\":\"ff\"}\n"));
    free(line);
}
