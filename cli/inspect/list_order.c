/* The order of idem list, and where it goes on. */
#include "inspect/list.h"
#include "options/command.h"
#include "record/verdict.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"

#include <idem/operator.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- The first rows in an order ---- */

int cli_row_compare(const struct cli_row *a, const struct cli_row *b)
{
    int order = (a->number < b->number) - (a->number > b->number);

    return order != 0 ? order : (a->tie < b->tie) - (a->tie > b->tie);
}

static int compare(const void *a, const void *b)
{
    return cli_row_compare(a, b);
}

/* Sorts the rows and drops those above the limit. */
static void cut(struct cli_rows *rows)
{
    if (rows->len > 0) {
        qsort(rows->list, rows->len, sizeof(*rows->list), compare);
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
    return !rows->is_cut ||
           cli_row_compare(&row, &rows->list[rows->limit - 1]) < 0;
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

/* ---- The order ---- */

/* Rows of one part of a list that shows all: some megabytes. */
enum {
    PART = 4096,
    PART_OF_WHOLE = 65536 /* Each part reads the whole store again. */
};

int cli_list_bad_place(const struct cli_command *command)
{
    return cli_usage(
        command,
        "--after: not a place in this list; use the one printed after the previous page");
}

/* "s1763900000000-0123456789abcdef" */
static bool read_place(struct cli_list_order *order)
{
    char again[CLI_LIST_PLACE_MAX];

    if (sscanf(order->after, "s%19" SCNd64 "-%16" SCNx64,
               &order->after_created_ms, &order->after_id) != 2) {
        return false;
    }
    (void)snprintf(again, sizeof(again), "s%" PRId64 "-%016" PRIx64,
                   order->after_created_ms, order->after_id);
    return strcmp(again, order->after) == 0;
}

int cli_list_order(const struct cli_command *command,
                   struct cli_list_order *order,
                   const struct idem_filter *filter, struct idem_store *store,
                   char place[IDEM_PLACE_MAX])
{
    bool remote = idem_store_is_remote(store);
    bool whole = remote && strncmp(idem_store_url(store), "postgres", 8) == 0;
    bool indexed = cli_index_serves(filter) || whole;

    order->sorts = indexed || (remote && order->limit != 0);
    order->stops = !indexed && order->limit != 0;
    order->pages = indexed;
    order->unordered = !indexed && remote;
    if (indexed) {
        order->rows.limit = order->limit != 0 ? (size_t)order->limit
                            : whole           ? PART_OF_WHOLE
                                              : PART;
    }
    if (order->after == NULL) {
        return 0;
    }
    if (!indexed && strlen(order->after) < IDEM_PLACE_MAX) {
        (void)strcpy(place, order->after);
        return 0;
    }
    order->goes_on = indexed && read_place(order);
    return order->goes_on ? 0 : cli_list_bad_place(command);
}

bool cli_list_is_full(const struct cli_list_order *order, uint64_t shown)
{
    return order->stops && shown >= order->limit;
}

/* A part of the id: the same in any walk and process, so that a page can go on after
 * it. */
static uint64_t tie_of(const struct idem_record *r)
{
    uint64_t tie = 0;
    size_t i;

    for (i = 0; i < sizeof(tie); i++) {
        tie = tie << 8 | r->id[i];
    }
    return tie;
}

static bool is_before(const struct cli_list_order *order,
                      const struct cli_row *row)
{
    struct cli_row place = {.number = order->after_created_ms,
                            .tie = order->after_id};

    return order->goes_on && cli_row_compare(row, &place) <= 0;
}

bool cli_list_wants(struct cli_list_order *order, int code,
                    const struct idem_record *record, struct cli_row *ret_row)
{
    ret_row->number = code == 0 ? record->created_ms : 0;
    ret_row->tie = tie_of(record);
    return !is_before(order, ret_row) &&
           cli_rows_wants(&order->rows, ret_row->number, ret_row->tie);
}

/* The last row, if the limit has cut others off after it. */
static const struct cli_row *last_of_more(const struct cli_list_order *order)
{
    const struct cli_rows *rows = &order->rows;

    return order->pages && rows->added > rows->limit
               ? &rows->list[rows->len - 1]
               : NULL;
}

bool cli_list_next(const struct cli_list_order *order,
                   char place[CLI_LIST_PLACE_MAX])
{
    const struct cli_row *last = last_of_more(order);

    if (last == NULL) {
        return false;
    }
    (void)snprintf(place, CLI_LIST_PLACE_MAX, "s%" PRId64 "-%016" PRIx64,
                   last->number, last->tie);
    return true;
}

bool cli_list_next_part(struct cli_list_order *order)
{
    const struct cli_row *last = last_of_more(order);

    if (last == NULL || order->limit != 0) {
        return false;
    }
    order->goes_on = true;
    order->after_created_ms = last->number;
    order->after_id = last->tie;
    cli_rows_empty(&order->rows);
    return true;
}
