/* Records as lines of JSON: what was written is read, and nothing else is. */
#include "upkeep/transfer.h"

#include "core/identity.h"
#include "sample.h"
#include "test.h"

#include <stdlib.h>

static struct cli_transfer transfer; /* It is large. */

/* The line of @record, to be freed. */
static char *line_of(const struct idem_record *record)
{
    char *line = NULL;
    size_t len;
    FILE *f = open_memstream(&line, &len);

    assert_non_null(f);
    assert_int_equal(cli_transfer_write(f, record), 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(line[len - 1], '\n');
    line[len - 1] = '\0';
    return line;
}

static struct idem_record record_with_bodies(void)
{
    struct idem_record record = sample_ended(IDEM_STATUS_COMPLETED, 3600000);

    record.input = idem_str("request");
    record.input_len = 7;
    assert_ok(idem__body_digest(record.input, record.input_digest));
    return record;
}

static void check_read(const char *line, const struct idem_record *want)
{
    assert_int_equal(cli_transfer_read(idem_str(line), &transfer),
                     CLI_TRANSFER_RECORD);
    assert_same_record(&transfer.record, want);
    assert_slice(transfer.record.result.bytes, want->result.bytes);
    assert_slice(transfer.record.input, want->input);
    cli_transfer_finish(&transfer);
}

/* A key that is not text is in hex. */
TEST(transfer, writesBytesInHex)
{
    struct idem_record record = record_with_bodies();
    char *line;

    record.key = idem_bytes("\xff\0k", 3);
    assert_ok(idem_id(record.scope, record.key, record.id));
    line = line_of(&record);
    assert_non_null(strstr(line, "\"key\":null,\"key_hex\":\"ff006b\""));
    check_read(line, &record);
    free(line);
}

/* The header says which version an export has, and from where it is. */
TEST(transfer, beginsWithAHeader)
{
    char *line = NULL;
    size_t len;
    FILE *f = open_memstream(&line, &len);

    assert_non_null(f);
    assert_int_equal(cli_transfer_header(f, "sqlite:a", NULL), 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(cli_transfer_read(idem_bytes(line, len - 1), &transfer),
                     CLI_TRANSFER_HEADER);
    assert_int_equal(transfer.version, CLI_TRANSFER_VERSION);
    assert_non_null(strstr(line, "\"store\":\"sqlite:a\""));
    cli_transfer_finish(&transfer);
    free(line);
}

/* @line with the first @from replaced by @to. */
static char *changed(const char *line, const char *from, const char *to)
{
    const char *at = strstr(line, from);
    char *copy = NULL;

    assert_non_null(at);
    assert_true(asprintf(&copy, "%.*s%s%s", (int)(at - line), line, to,
                         at + strlen(from)) > 0);
    return copy;
}

/* Whatever does not hold together is refused, with the reason. */
TEST(transfer, refusesWhatDoesNotHoldTogether)
{
    static const struct {
        const char *from;
        const char *to;
        const char *why;
    } rows[] = {
        {"\"key\":", "\"kay\":", "no scope and key"},
        {"\"scope\":\"shop\"", "\"scope\":7", "no scope and key"},
        {"\"key\":\"order-42\"", "\"key\":null,\"key_hex\":\"6\"",
         "no scope and key"},
        {"\"key\":\"order-42\"", "\"key\":null,\"key_hex\":\"6g\"",
         "no scope and key"},
        {"\"key\":\"order-42\"", "\"key\":null,\"key_hex\":\"g6\"",
         "no scope and key"},
        {"\"key\":\"order-42\"", "\"key\":null,\"key_hex\":\"6\\u0000\"",
         "no scope and key"},
        {"\"key\":\"order-42\"", "\"key\":\"order-43\"", "checksum"},
        {"\"key\":\"order-42\"", "\"key\":\"\"", "no scope and key"},
        {"\"head\":\"SURS", "\"head\":\"SUR", "no head"},
        {"\"head\":\"SURS", "\"head\":\"SU S", "no head"},
        {"\"head\":", "\"hat\":", "no head"},
        {"\"result\":\"ZG9uZQ==\"", "\"result\":\"ZG9uZQ=\"", "its result"},
        {"\"result\":\"ZG9uZQ==\"", "\"result\":\"ZG9uZR==\"", "its result"},
        {"\"result\":\"ZG9uZQ==\"", "\"result\":\"Z29uZQ==\"", "its result"},
        {"\"result\":\"ZG9uZQ==\"", "\"result\":7", "its result"},
        {"\"input\":", "\"imput\":", "its input"},
        {"\"status\":\"completed\"", "\"status\":\"failed\"", "\"status\""},
        {"\"fence\":41", "\"fence\":42", "\"fence\""},
        {"{", "[", "not JSON"},
        {"{", "{{", "not JSON"},
        {"}", "", "cut short"},
        {"}", "}}", "not JSON"},
    };
    struct idem_record record = record_with_bodies();
    char *line = line_of(&record);

    check_read(line, &record);
    EACH(row, rows) {
        char *bad = changed(line, row->from, row->to);

        if (cli_transfer_read(idem_str(bad), &transfer) != CLI_TRANSFER_BAD ||
            strstr(transfer.why, row->why) == NULL) {
            fail_with("%s for %s: \"%s\"", row->to, row->from, transfer.why);
        }
        cli_transfer_finish(&transfer);
        free(bad);
    }
    free(line);
}

/* A line that is no object, and one with a NUL in it. */
TEST(transfer, refusesWhatIsNoObject)
{
    static const char *const lines[] = {"", "[]", "7", "null", "\"x\"", "\xff"};

    EACH(line, lines) {
        assert_int_equal(cli_transfer_read(idem_str(*line), &transfer),
                         CLI_TRANSFER_BAD);
        cli_transfer_finish(&transfer);
    }
    assert_int_equal(cli_transfer_read(idem_bytes("{}\0{}", 5), &transfer),
                     CLI_TRANSFER_BAD);
    assert_non_null(strstr(transfer.why, "NUL"));
    cli_transfer_finish(&transfer);
}

/* A member that is not known, or left out, changes nothing. */
TEST(transfer, goesByTheHead)
{
    struct idem_record record = record_with_bodies();
    char *line = line_of(&record);
    char *other = changed(line, "\"status\":", "\"later\":[1,{}],\"state\":");

    check_read(other, &record);
    free(other);
    free(line);
}
