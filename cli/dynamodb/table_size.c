/* How large a DynamoDB table is. */
#include "dynamodb/table_size.h"

#include "text/error.h"
#include "text/progress.h"
#include "text/screen.h"

#define SCHEME "dynamodb:"

enum {
    UNIT = 4096,      /* Bytes that are read for one unit, strongly ... */
    UNIT_WEAK = 8192, /* ... and not. */
};

const char *cli_table_place(const char *url)
{
    size_t len = strlen(SCHEME);

    return url != NULL && strncmp(url, SCHEME, len) == 0 ? url + len : NULL;
}

bool cli_is_table(const struct idem_store *store)
{
    return cli_table_place(idem_store_url(store)) != NULL;
}

int cli_table_size(const char *place, struct idem_dynamodb_extent *ret_size,
                   struct idem_error *ret_error)
{
    *ret_size = (struct idem_dynamodb_extent)IDEM_DYNAMODB_EXTENT_INIT;
    return idem_dynamodb_size(place, ret_size, ret_error);
}

static uint64_t units(uint64_t bytes, uint64_t each)
{
    return bytes / each + 1;
}

uint64_t cli_table_list_units(const struct idem_dynamodb_extent *size)
{
    return units(size->bytes, UNIT);
}

uint64_t cli_table_get_units(const struct idem_dynamodb_extent *size)
{
    return size->items == 0
               ? 0
               : size->items * units(size->bytes / size->items, UNIT);
}

static uint64_t read_units(const struct idem_dynamodb_extent *size,
                           enum cli_table_read how)
{
    switch (how) {
    case CLI_TABLE_CHECK:
        return units(size->bytes, UNIT_WEAK);
    case CLI_TABLE_EXPORT:
        return cli_table_list_units(size) + cli_table_get_units(size);
    case CLI_TABLE_LIST:
        break;
    }
    return cli_table_list_units(size);
}

void cli_table_say_read(const char *url, enum cli_table_read how,
                        uint64_t above)
{
    const char *place = cli_table_place(url);
    struct idem_dynamodb_extent size;
    struct idem_error error;

    if (place == NULL || !cli_stderr_is_tty() || cli_progress_off ||
        cli_table_size(place, &size, &error) != 0 || size.items == 0) {
        return;
    }
    if (read_units(&size, how) > above) {
        cli_say("reading about %llu items, for %llu read units",
                (unsigned long long)size.items,
                (unsigned long long)read_units(&size, how));
    }
}
