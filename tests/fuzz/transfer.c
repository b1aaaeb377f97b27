/* Exports. The first byte of the input says what the rest is:
 *
 * - a file of lines, as import reads them. Each line is the one that stands there,
 *   and no other; one that is accepted stands for a record that a store takes, and
 *   that is exported as a line which stands for the same record.
 * - a record, whose line is read back as that record; and where one byte of the
 *   line is changed, it is refused, or still stands for that very record.
 */
#include "text/lines.h"
#include "text/text.h"
#include "upkeep/transfer.h"
#include "core/record.h"
#include "fuzz.h"

#include <idem/operator.h>
#include <stdlib.h>

static struct cli_transfer first; /* They are large. */
static struct cli_transfer second;

static char *export_line(const struct idem_record *record, size_t *ret_len)
{
    char *line = NULL;
    FILE *f = open_memstream(&line, ret_len);

    must(f != NULL);
    must(cli_transfer_write(f, record) == 0);
    must(fclose(f) == 0);
    must(*ret_len > 0 && line[*ret_len - 1] == '\n');
    must(strlen(line) == *ret_len && strchr(line, '\n')[1] == '\0');
    must(cli_is_utf8(idem_bytes(line, *ret_len)));
    return line;
}

/* The line of @record stands for @record. */
static void export_and_read(const struct idem_record *record)
{
    size_t len;
    char *line = export_line(record, &len);

    must(cli_transfer_read(idem_bytes(line, len - 1), &second) ==
         CLI_TRANSFER_RECORD);
    must(same_record(&second.record, record));
    cli_transfer_finish(&second);
    free(line);
}

static void into_store(const struct idem_record *record)
{
    static struct idem_store *store;
    struct idem_answer *answer;
    struct idem_error error;
    bool added = false;
    int rc;

    if (store == NULL) {
        must(idem_open("memory:", NULL, &store, NULL) == 0);
    }
    rc = idem_import(store, record, &added, &error);
    must(rc == 0 || rc == IDEM_EINVALID);
    if (!added) {
        return;
    }
    rc = idem_get(store, record->scope, record->key, &answer, NULL);
    must(rc == 0);
    must(same_record(idem_answer_record(answer), record));
    idem_answer_destroy(answer);
    idem_close(store); /* It has one record at most. */
    store = NULL;
}

static void read_line(struct idem_slice line)
{
    switch (cli_transfer_read(line, &first)) {
    case CLI_TRANSFER_RECORD:
        must(idem__record_fault(&first.record) == NULL);
        /* Nothing stands behind it that nobody looks at. */
        must(line.len > 0 &&
             strchr("} \t\r", ((const char *)line.base)[line.len - 1]) != NULL);
        export_and_read(&first.record);
        into_store(&first.record);
        break;
    case CLI_TRANSFER_BAD:
        must(first.why[0] != '\0');
        break;
    case CLI_TRANSFER_HEADER:
    case CLI_TRANSFER_NOMEM:
        break;
    }
    cli_transfer_finish(&first);
}

static void read_file(struct tape *tape)
{
    size_t max = take_bool(tape) ? 40 : CLI_TRANSFER_LINE_MAX;
    struct idem_slice rest = take_rest(tape);
    struct cli_lines lines = {.max = max};
    const char *p = rest.base;
    const char *end = p + rest.len;
    enum cli_lines_got got;
    size_t number = 0;

    if (rest.len == 0) {
        return;
    }
    lines.f = fmemopen((void *)(uintptr_t)rest.base, rest.len, "r");
    must(lines.f != NULL);
    while ((got = cli_lines_next(&lines)) != CLI_LINES_END) {
        const char *newline = p < end ? memchr(p, '\n', (size_t)(end - p)) : 0;
        size_t len = (size_t)((newline != NULL ? newline : end) - p);

        must(p < end && lines.number == ++number);
        must(got == (len > max ? CLI_LINES_TOO_LONG : CLI_LINES_ONE));
        if (got == CLI_LINES_ONE) {
            must(same_bytes(idem_bytes(lines.line, lines.len),
                            idem_bytes(p, len)));
            must(lines.line[len] == '\0');
            read_line(idem_bytes(lines.line, lines.len));
        }
        p += len + (newline != NULL);
    }
    must(p == end);
    cli_lines_finish(&lines);
    must(fclose(lines.f) == 0);
}

static void change_line(struct tape *tape)
{
    size_t at = (size_t)take_u64(tape);
    char bits = (char)take_u8(tape);
    struct idem_record record;
    size_t len;
    char *line;

    take_record(tape, &record);
    export_and_read(&record);
    into_store(&record);
    line = export_line(&record, &len);
    line[at % (len - 1)] ^= bits;
    if (cli_transfer_read(idem_bytes(line, len - 1), &first) ==
        CLI_TRANSFER_RECORD) {
        must(same_record(&first.record, &record));
    }
    cli_transfer_finish(&first);
    free(line);
}

FUZZ_HUSHED

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);

    if (take_bool(&tape)) {
        change_line(&tape);
    } else {
        read_file(&tape);
    }
    return 0;
}
