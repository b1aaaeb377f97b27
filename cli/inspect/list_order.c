/* In which order idem list shows records, and where it goes on. */
#include "inspect/list_order.h"

#include "options/usage.h"
#include "store/index.h"

#include <idem/operator.h>
#include <inttypes.h>
#include <stdlib.h>

int cli_list_sort(const struct cli_command *command,
                  struct cli_list_order *order, const char *sort)
{
    struct cli_fields by = {.len = 0};
    bool down = sort != NULL && sort[0] == '-';
    int status;

    if (sort == NULL) {
        return 0;
    }
    status = cli_fields_parse(command, "sort", sort + down, &by);
    if (status == 0 && by.len > 1) {
        return cli_usage(command, "--sort: sort by one field");
    }
    if (status == 0 && order->after != NULL) {
        return cli_usage(command, "--after goes on in the order of the store, "
                                  "and --sort has another");
    }
    order->field = status == 0 ? by.list[0] : NULL;
    order->rows.descending = down != order->reverse;
    return status;
}

int cli_list_bad_place(const struct cli_command *command)
{
    return cli_usage(command,
                     "--after: not a place of this list; type the command that "
                     "the page before it ended with");
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

bool cli_list_reads_all(const struct cli_list_order *order,
                        const struct idem_filter *filter, const char *url)
{
    return !order->stops && !cli_filter_has_index(filter, url);
}

int cli_list_order(const struct cli_command *command,
                   struct cli_list_order *order,
                   const struct idem_filter *filter, bool remote,
                   char place[IDEM_PLACE_MAX])
{
    bool indexed = cli_index_serves(filter);

    if (order->field != NULL) {
        order->sorts = true;
        order->rows.limit = (size_t)order->limit;
        return 0;
    }
    order->sorts = indexed || (remote && order->limit != 0);
    order->stops = !indexed && order->limit != 0;
    order->pages = indexed;
    order->unordered = !indexed && remote;
    order->rows.descending = !order->reverse;
    order->rows.limit = indexed ? (size_t)order->limit : 0;
    if (order->after == NULL) {
        return 0;
    }
    if (!indexed && strlen(order->after) < IDEM_PLACE_MAX) {
        (void)strcpy(place, order->after);
        return 0;
    }
    return indexed && read_place(order) ? 0 : cli_list_bad_place(command);
}

bool cli_list_is_full(const struct cli_list_order *order, uint64_t shown)
{
    return order->stops && shown >= order->limit;
}

/* The same in any walk, and in any process. */
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
                      const struct cli_list_value *value)
{
    struct cli_row place = {.number = order->after_created_ms,
                            .tie = order->after_id};
    struct cli_row row = {.number = value->number, .tie = value->tie};

    return order->pages && order->after != NULL &&
           cli_row_compare(&row, &place, order->rows.descending) <= 0;
}

static char *text_of(const struct cli_field *field, const struct idem_record *r)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    if (f != NULL) {
        field->print(f, r, /* is_tty= */ false);
        (void)fclose(f);
    }
    return text;
}

bool cli_list_value(struct cli_list_order *order, int code,
                    const struct idem_record *record,
                    struct cli_list_value *ret_value)
{
    const struct cli_field *field = order->field;
    struct cli_list_value value = {.tie = tie_of(record)};

    if (field == NULL) {
        value.number = code == 0 ? record->created_ms : 0;
    } else if (field->number == NULL) {
        value.text = text_of(field, record);
    } else {
        value.number = code == 0 ? field->number(record) : 0;
    }
    if (is_before(order, &value) ||
        !cli_rows_wants(&order->rows, value.text, value.number, value.tie)) {
        free(value.text);
        return false;
    }
    *ret_value = value;
    return true;
}

bool cli_list_next(const struct cli_list_order *order,
                   char place[CLI_LIST_PLACE_MAX])
{
    const struct cli_rows *rows = &order->rows;
    const struct cli_row *last;

    if (!order->pages || rows->limit == 0 || rows->added <= rows->limit) {
        return false;
    }
    last = &rows->list[rows->len - 1];
    (void)snprintf(place, CLI_LIST_PLACE_MAX, "s%" PRId64 "-%016" PRIx64,
                   last->number, last->tie);
    return true;
}
