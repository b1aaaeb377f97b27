/* The statement that ends an attempt in the caller's own transaction, as JSON. */
#include "record/record.h"

#include "contract/kind.h"
#include "text/json.h"
#include "text/text.h"

#include <idem/statement.h>
#include <inttypes.h>
#include <stdlib.h>

static void add_bytes(struct cli_json *json, struct idem_slice bytes)
{
    char *text = malloc(2 * bytes.len + 3);

    if (text == NULL) {
        json->text.failed = true;
        return;
    }
    text[0] = '\\';
    text[1] = 'x';
    cli_hex(bytes, text + 2);
    cli_json_append_text(json, "values", text);
    free(text);
}

/* Adds each value as a text, which a driver passes on as it is. The statement declares
 * the type of each, and many languages read a number in JSON with less than 64 bits of
 * precision. */
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

int cli_statement_json(struct cli_json *json, const struct idem_store *store,
                       struct idem_attempt *attempt,
                       const struct idem_result *result,
                       struct idem_error *error)
{
    const struct idem_store_kind *kind;
    struct idem_statement statement;
    const char *place;
    size_t i;
    int rc = idem__kind_find(idem_store_url(store), &kind, &place, error);

    if (rc != 0) {
        return rc;
    }
    if (kind->completion == NULL) {
        (void)snprintf(
            error->text, sizeof(error->text),
            "a statement of SQL needs a PostgreSQL store, and this one "
            "is of kind %s; see docs/transactions.md",
            kind->scheme);
        return IDEM_EINVALID;
    }
    rc = kind->completion(attempt, result, &statement, error);
    if (rc != 0) {
        return rc;
    }
    cli_json_text(json, "text", statement.text);
    for (i = 0; i < statement.values_len; i++) {
        add_value(json, &statement.values[i]);
    }
    cli_json_count(json, "rows", (uint64_t)statement.rows);
    return 0;
}
