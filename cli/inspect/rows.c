/* The first lines of a list in its order. */
#include "inspect/rows.h"

#include "text/error.h"
#include "text/exit_status.h"

#include <stdlib.h>
#include <string.h>

int cli_row_compare(const struct cli_row *a, const struct cli_row *b,
                    bool descending)
{
    int order = (a->number > b->number) - (a->number < b->number);

    if (order == 0) {
        order = (a->tie > b->tie) - (a->tie < b->tie);
    }
    return descending ? -order : order;
}

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
        free(rows->list[--rows->len].line);
    }
    rows->is_cut = rows->limit != 0 && rows->len == rows->limit;
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

bool cli_rows_wants(struct cli_rows *rows, int64_t number, uint64_t tie)
{
    struct cli_row row = {.number = number, .tie = tie};

    rows->added++;
    return !rows->is_cut || cli_row_compare(&row, &rows->list[rows->limit - 1],
                                            rows->descending) < 0;
}

int cli_rows_add(struct cli_rows *rows, char *line, int64_t number,
                 uint64_t tie)
{
    int status;

    if (rows->limit != 0 && rows->len / 2 >= rows->limit) {
        cut(rows);
    }
    status = make_room(rows);
    if (status != 0) {
        free(line);
        return status;
    }
    rows->list[rows->len++] =
        (struct cli_row){.line = line, .number = number, .tie = tie};
    return 0;
}

void cli_rows_print(struct cli_rows *rows, FILE *f)
{
    size_t i;

    cut(rows);
    for (i = 0; i < rows->len; i++) {
        (void)fputs(rows->list[i].line, f);
    }
}

void cli_rows_empty(struct cli_rows *rows)
{
    while (rows->len > 0) {
        free(rows->list[--rows->len].line);
    }
    rows->is_cut = false;
    rows->added = 0;
}

void cli_rows_finish(struct cli_rows *rows)
{
    cli_rows_empty(rows);
    free(rows->list);
    memset(rows, 0, sizeof(*rows));
}
