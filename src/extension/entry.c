/* The function that SQLite calls when it loads the extension. */
#include "extension/extension.h"

SQLITE_EXTENSION_INIT1

/* Of the tables, which are STRICT. */
#define OLDEST 3037000
#define OLDEST_TEXT "3.37"

/* The first functions of the host's table are those of every version. */
static int refuse_old(char **ret_message, const sqlite3_api_routines *api)
{
    *ret_message = api->mprintf("mod_idem needs SQLite " OLDEST_TEXT
                                " or later; this program has %s",
                                api->libversion());
    return SQLITE_ERROR;
}

/* There is one sqlite3_api for the whole process. */
static int refuse_other(char **ret_message, const sqlite3_api_routines *api)
{
    *ret_message = api->mprintf(
        "another SQLite in this process has loaded mod_idem: use idem through "
        "only one of them");
    return SQLITE_ERROR;
}

/* SQLite derives this name from mod_idem.so. */
__attribute__((visibility("default"))) int sqlite3_modidem_init(
    sqlite3 *db, char **ret_message, const sqlite3_api_routines *api);

int sqlite3_modidem_init(sqlite3 *db, char **ret_message,
                         const sqlite3_api_routines *api)
{
    int rc;

    if (api->libversion_number() < OLDEST) {
        return refuse_old(ret_message, api);
    }
    if (sqlite3_api != NULL && sqlite3_api != api) {
        return refuse_other(ret_message, api);
    }
    SQLITE_EXTENSION_INIT2(api);
    rc = idem__extension_add_begin(db);
    if (rc == SQLITE_OK) {
        rc = idem__extension_add_ends(db);
    }
    /* Stays in memory when the connection is closed: another one that loads it
     * meanwhile would have the ground pulled away. */
    return rc == SQLITE_OK ? SQLITE_OK_LOAD_PERMANENTLY : rc;
}
