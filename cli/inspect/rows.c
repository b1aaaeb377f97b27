/* Lines that are sorted before they are printed. */
#include "inspect/rows.h"

#include "text/error.h"
#include "text/exit_status.h"

#include <stdlib.h>

enum {
    BYTES_MAX = 8 << 20
};

static int ascending(const void *a, const void *b)
{
    return cli_row_compare(a, b, /* descending= */ false);
}

static int descending(const void *a, const void *b)
{
    return cli_row_compare(a, b, /* descending= */ true);
}

/* Sorts the rows and drops those above the limit. */
static void cut(struct cli_rows *rows)
{
    if (rows->len > 0) {
        qsort(rows->list, rows->len, sizeof(*rows->list),
              rows->descending ? descending : ascending);
    }
    while (rows->limit != 0 && rows->len > rows->limit) {
        cli_row_finish(&rows->list[--rows->len]);
    }
    rows->is_cut = rows->limit != 0 && rows->len == rows->limit;
}

/* Sorts the rows into the file. */
static int put_away(struct cli_rows *rows)
{
    int status;

    cut(rows);
    status = cli_runs_add(&rows->runs, rows->list, rows->len);
    while (rows->len > 0) {
        cli_row_finish(&rows->list[--rows->len]);
    }
    rows->bytes = 0;
    return status;
}

static int make_room(struct cli_rows *rows)
{
    size_t room = rows->room == 0 ? 64 : 2 * rows->room;
    struct cli_row *list;

    if (rows->len < rows->room) {
        return 0;
    }
    list = reallocarray(rows->list, room, sizeof(*list));
    if (list == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    rows->list = list;
    rows->room = room;
    return 0;
}

bool cli_rows_wants(struct cli_rows *rows, const char *text, int64_t number,
                    uint64_t tie)
{
    struct cli_row row = {.text = (char *)(uintptr_t)text,
                          .number = number,
                          .tie = tie};

    rows->added++;
    return !rows->is_cut || cli_row_compare(&row, &rows->list[rows->limit - 1],
                                            rows->descending) < 0;
}

int cli_rows_add(struct cli_rows *rows, char *line, char *text, int64_t number,
                 uint64_t tie)
{
    struct cli_row row = {.line = line,
                          .text = text,
                          .number = number,
                          .tie = tie};
    size_t bytes_max = rows->bytes_max == 0 ? BYTES_MAX : rows->bytes_max;
    int status = 0;

    if (rows->limit != 0 && rows->len / 2 >= rows->limit) {
        cut(rows);
    }
    if (rows->limit == 0 && rows->bytes >= bytes_max) {
        status = put_away(rows);
    }
    if (status == 0) {
        status = make_room(rows);
    }
    if (status != 0) {
        cli_row_finish(&row);
        return status;
    }
    rows->bytes += sizeof(row) + strlen(line) +
                   (text != NULL ? strlen(text) : 0) + 64 /* of malloc's */;
    rows->list[rows->len++] = row;
    return 0;
}

int cli_rows_print(struct cli_rows *rows, FILE *f)
{
    int status = 0;
    size_t i;

    if (rows->runs.len > 0) {
        status = put_away(rows);
        return status != 0 ? status
                           : cli_runs_print(&rows->runs, rows->descending, f);
    }
    cut(rows);
    for (i = 0; i < rows->len; i++) {
        (void)fputs(rows->list[i].line, f);
    }
    return status;
}

void cli_rows_finish(struct cli_rows *rows)
{
    while (rows->len > 0) {
        cli_row_finish(&rows->list[--rows->len]);
    }
    free(rows->list);
    cli_runs_finish(&rows->runs);
    memset(rows, 0, sizeof(*rows));
}
