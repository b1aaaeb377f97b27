/* Lines that are sorted before they are printed. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

static void finish(struct cli_row *row)
{
    free(row->line);
    free(row->text);
}

static int order(const struct cli_row *a, const struct cli_row *b)
{
    int by_value = a->text != NULL && b->text != NULL
                       ? strcmp(a->text, b->text)
                       : (a->number > b->number) - (a->number < b->number);

    return by_value != 0 ? by_value : (a->turn > b->turn) - (a->turn < b->turn);
}

static int ascending(const void *a, const void *b)
{
    return order(a, b);
}

static int descending(const void *a, const void *b)
{
    return order(b, a);
}

/* Sorts the rows and drops those above the limit. */
static void cut(struct cli_rows *rows)
{
    size_t surplus = rows->limit != 0 && rows->len > rows->limit
                         ? rows->len - rows->limit
                         : 0;
    size_t i;

    if (rows->len > 0) {
        qsort(rows->list, rows->len, sizeof(*rows->list),
              rows->descending ? descending : ascending);
    }
    for (i = 0; i < surplus; i++) {
        finish(&rows->list[rows->keeps_last ? i : rows->len - 1 - i]);
    }
    if (surplus > 0 && rows->keeps_last) {
        memmove(rows->list, rows->list + surplus,
                rows->limit * sizeof(*rows->list));
    }
    rows->len -= surplus;
}

static int grow(struct cli_rows *rows)
{
    size_t room = rows->room == 0 ? 64 : 2 * rows->room;
    struct cli_row *list = reallocarray(rows->list, room, sizeof(*list));

    if (list == NULL) {
        return -1;
    }
    rows->list = list;
    rows->room = room;
    return 0;
}

int cli_rows_add(struct cli_rows *rows, char *line, char *text, int64_t number)
{
    struct cli_row row = {.line = line,
                          .text = text,
                          .number = number,
                          .turn = rows->turn++};

    if (rows->len == rows->room && rows->limit != 0 &&
        rows->len >= 2 * rows->limit) {
        cut(rows);
    }
    if (rows->len == rows->room && grow(rows) != 0) {
        finish(&row);
        return -1;
    }
    rows->list[rows->len++] = row;
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

void cli_rows_finish(struct cli_rows *rows)
{
    size_t i;

    for (i = 0; i < rows->len; i++) {
        finish(&rows->list[i]);
    }
    free(rows->list);
    memset(rows, 0, sizeof(*rows));
}
