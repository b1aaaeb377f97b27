/* table_size.h: how large a DynamoDB table is, for telling a bill before it is run
 * up. */
#ifndef IDEM_CLI_DYNAMODB_TABLE_SIZE_H
#define IDEM_CLI_DYNAMODB_TABLE_SIZE_H

#include <idem.h>
#include <idem/dynamodb.h>

/* True: @store is a table. */
bool cli_is_table(const struct idem_store *store);

/* The part of @url after "dynamodb:"; NULL if it is not the URL of a table. */
const char *cli_table_place(const char *url);

/* By one request that costs no units. The service counts anew about every six hours:
 * 0 items may be many. An enum idem_code, with @ret_error. */
int cli_table_size(const char *place, struct idem_dynamodb_extent *ret_size,
                   struct idem_error *ret_error);

/* Read units of all items of a table of @size, read strongly ... */
uint64_t cli_table_list_units(const struct idem_dynamodb_extent *size);
/* ... and each of them once more, by its key. */
uint64_t cli_table_get_units(const struct idem_dynamodb_extent *size);

enum cli_table_read {
    CLI_TABLE_CHECK,  /* All items, not strongly. */
    CLI_TABLE_LIST,   /* All items. */
    CLI_TABLE_EXPORT, /* All items, and each by its key. */
};

/* Says on the terminal of stderr, unless --quiet was given, what reading all of the
 * table at @url costs, if that is more than @above units. Says nothing of another
 * store, nor where the service does not know the size. */
void cli_table_say_read(const char *url, enum cli_table_read how,
                        uint64_t above);

/* The size up to which a list or export reads without a remark. */
#define CLI_TABLE_UNITS_UNSAID 1000

#endif
