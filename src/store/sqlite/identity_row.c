/* Which store was made here: its random id in the database. */
#include "store/sqlite/identity.h"

#include <string.h>

static int read_id(sqlite3_stmt *stmt, bool *ret_has,
                   uint8_t ret_id[IDEM__STORE_ID_LEN])
{
    int rc = sqlite3_step(stmt);

    *ret_has =
        rc == SQLITE_ROW && sqlite3_column_bytes(stmt, 0) == IDEM__STORE_ID_LEN;
    if (*ret_has) {
        memcpy(ret_id, sqlite3_column_blob(stmt, 0), IDEM__STORE_ID_LEN);
    }
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int idem__identity_load(struct idem__conn *conn, bool *ret_has,
                        uint8_t ret_id[IDEM__STORE_ID_LEN],
                        struct idem_error *error)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(conn->db,
                                "SELECT store_id FROM idem_clock WHERE one = 1",
                                -1, &stmt, NULL);

    if (rc == SQLITE_OK) {
        rc = read_id(stmt, ret_has, ret_id);
    }
    (void)sqlite3_finalize(stmt);
    return rc == SQLITE_OK
               ? 0
               : idem__conn_fail(conn, rc, "read the store's id", error);
}

int idem__identity_save(struct idem__conn *conn,
                        const uint8_t id[IDEM__STORE_ID_LEN])
{
    sqlite3_stmt *stmt = NULL;
    int rc =
        sqlite3_prepare_v2(conn->db,
                           "UPDATE idem_clock SET store_id = ?1 WHERE one = 1",
                           -1, &stmt, NULL);

    if (rc == SQLITE_OK) {
        (void)sqlite3_bind_blob(stmt, 1, id, IDEM__STORE_ID_LEN, SQLITE_STATIC);
        rc = sqlite3_step(stmt);
    }
    (void)sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}
