/* Has the function that SQLite calls when it loads the extension. */
#include "extension/extension.h"

SQLITE_EXTENSION_INIT1

/* The tables are STRICT, which needs this version. */
#define OLDEST 3037000
#define OLDEST_TEXT "3.37"

/* Calls the host's table directly: its first functions are there in every version. */
static int refuse_old(char **ret_message, const sqlite3_api_routines *api)
{
    *ret_message = api->mprintf("mod_idem needs SQLite " OLDEST_TEXT
                                " or later; this program has %s",
                                api->libversion());
    return SQLITE_ERROR;
}

/* The process has one sqlite3_api, so it can serve only one SQLite. */
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
    /* Keep the library loaded after the connection is closed: another connection may
     * use its functions, and unloading it would crash that one. */
    return rc == SQLITE_OK ? SQLITE_OK_LOAD_PERMANENTLY : rc;
}
