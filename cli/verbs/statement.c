/* idem complete --as-sql: the end of an attempt as a statement that its owner runs. */
#include "contract/kind.h"
#include "text/error.h"
#include "text/json.h"
#include "text/text.h"
#include "verbs/held.h"

#include <idem/statement.h>
#include <inttypes.h>
#include <stdlib.h>

static void add_bytes(struct cli_json *json, struct idem_slice bytes)
{
    char *text = malloc(2 * bytes.len + 3);

    if (text == NULL) {
        json->failed = true;
        return;
    }
    text[0] = '\\';
    text[1] = 'x';
    cli_hex(bytes, text + 2);
    cli_json_append_text(json, "values", text);
    free(text);
}

/* Texts, which a driver passes on as they are: the statement says what type each has,
 * and many languages read a number of JSON less exactly than an integer of 64 bits. */
static void add_value(struct cli_json *json, const struct idem_value *value)
{
    char number[24];

    if (value->type == IDEM_VALUE_BYTES) {
        add_bytes(json, value->bytes);
    } else if (value->type == IDEM_VALUE_INTEGER) {
        (void)snprintf(number, sizeof(number), "%" PRId64, value->integer);
        cli_json_append_text(json, "values", number);
    } else {
        cli_json_append_text(json, "values", NULL);
    }
}

static int print(const struct idem_statement *statement)
{
    struct cli_json json;
    size_t i;
    int status;

    cli_json_init(&json);
    cli_json_text(&json, "text", statement->text);
    for (i = 0; i < statement->values_len; i++) {
        add_value(&json, &statement->values[i]);
    }
    cli_json_count(&json, "rows", (uint64_t)statement->rows);
    status = cli_json_print(&json);
    cli_json_finish(&json);
    return status;
}

/* A kind of an earlier version has no such member. */
static bool takes_statements(const struct idem_store_kind *kind)
{
    return kind->size >= offsetof(struct idem_store_kind, completion) +
                             sizeof(kind->completion) &&
           kind->completion != NULL;
}

static int make(struct cli_held *held, const struct idem_result *result,
                struct idem_statement *ret_statement, struct idem_error *error)
{
    const struct idem_store_kind *kind;
    const char *place;
    int rc = idem__kind_find(idem_store_url(held->store), &kind, &place, error);

    if (rc != 0) {
        return rc;
    }
    if (takes_statements(kind)) {
        return kind->completion(held->attempt, result, ret_statement, error);
    }
    (void)snprintf(error->text, sizeof(error->text),
                   "a store of kind %s takes no statement of its callers: "
                   "--as-sql is for PostgreSQL; leave it out, or see "
                   "docs/transactions.md",
                   kind->scheme);
    return IDEM_EINVALID;
}

int cli_held_print_statement(struct cli_held *held,
                             const struct idem_result *result)
{
    struct idem_statement statement;
    struct idem_error error = {0};
    int status = 0;

    error.code = make(held, result, &statement, &error);
    if (error.code == 0) {
        status = print(&statement);
    }
    return status != 0 ? (void)cli_held_finish(held, &error),
           status      : cli_held_finish(held, &error);
}
