/* Schemas of a PostgreSQL server: making them, and reading them without the store. */
#include "database.h"

#ifdef WITH_POSTGRES
#include "postgres/place.h"

#include <idem/postgres.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <unistd.h>

const char *database_new(void)
{
    static unsigned made;
    static char places[64][400];
    const char *url = getenv("IDEM_TEST_POSTGRES");
    char *place = places[made % COUNT(places)];

    if (url == NULL) {
        fail_with("IDEM_TEST_POSTGRES names no server");
    }
    (void)snprintf(place, sizeof(places[0]), "%s%cclock=host&schema=c%ld_%u",
                   strchr(url, ':') + 1, strchr(url, '?') == NULL ? '?' : '&',
                   (long)getpid(), made++);
    assert_ok(idem_postgres_create(place, NULL, &why));
    return place;
}

/* Reads a part of @key's row, or puts @bytes there. */
static PGresult *at_row(const char *place, const char *key, enum part part,
                        const uint8_t *bytes, size_t len)
{
    static const char *const columns[] = {"head", "result", "input"};
    struct idem__pg_place read;
    uint8_t id[IDEM_ID_LEN];
    const char *values[] = {(const char *)id, (const char *)bytes};
    int lengths[] = {sizeof(id), (int)len};
    int formats[] = {1, 1};
    const Oid types[] = {17, 17};
    char sql[256];
    PGresult *result;
    PGconn *conn;

    assert_ok(idem_id(idem_str(""), idem_str(key), id));
    assert_ok(idem__pg_place_read(place, &read, &why));
    conn = PQconnectdbParams((const char *const *)read.names,
                             (const char *const *)read.values, 0);
    if (bytes == NULL) {
        (void)snprintf(sql, sizeof(sql),
                       "SELECT %s FROM %s.idem_record WHERE id = $1",
                       columns[part], read.schema);
    } else {
        (void)snprintf(sql, sizeof(sql),
                       "UPDATE %s.idem_record SET %s = $2%s WHERE id = $1"
                       " RETURNING 1",
                       read.schema, columns[part],
                       part == HEAD ? ", tag = substr($2, length($2) - 15)"
                                    : "");
    }
    result = PQexecParams(conn, sql, bytes == NULL ? 1 : 2, types, values,
                          lengths, formats, 1);
    if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1) {
        fail_with("%s: %s", sql, PQerrorMessage(conn));
    }
    PQfinish(conn);
    idem__pg_place_finish(&read);
    return result;
}

size_t database_read(const char *place, const char *key, enum part part,
                     uint8_t *buf, size_t cap)
{
    PGresult *result = at_row(place, key, part, NULL, 0);
    size_t len = (size_t)PQgetlength(result, 0, 0);

    assert_true(len <= cap);
    if (len > 0) {
        memcpy(buf, PQgetvalue(result, 0, 0), len);
    }
    PQclear(result);
    return len;
}

void database_write(const char *place, const char *key, enum part part,
                    const uint8_t *bytes, size_t len)
{
    PQclear(at_row(place, key, part, bytes, len));
}

#else

const char *database_new(void)
{
    fail_with("this build has no PostgreSQL store");
    return NULL;
}

size_t database_read(const char *place, const char *key, enum part part,
                     uint8_t *buf, size_t cap)
{
    (void)place;
    (void)key;
    (void)part;
    (void)buf;
    return cap;
}

void database_write(const char *place, const char *key, enum part part,
                    const uint8_t *bytes, size_t len)
{
    (void)place;
    (void)key;
    (void)part;
    (void)bytes;
    (void)len;
}
#endif
