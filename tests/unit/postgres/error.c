/* What a SQLSTATE means for a request that was sent. */
#include "postgres/task_request.h"

#include "test.h"

#include <string.h>

static const char *state;

/* In the place of libpq's, for which a result cannot be given a state. */
char *__wrap_PQresultErrorField(const PGresult *result, int field);

char *__wrap_PQresultErrorField(const PGresult *result, int field)
{
    static char copy[6];

    (void)result;
    (void)snprintf(copy, sizeof(copy), "%s", state);
    return field == PG_DIAG_SQLSTATE ? copy : NULL;
}

/* After a lost connection nothing is certain, also where a pooler reports it (08P01). */
TEST(error, isReadFromTheState)
{
    static const struct {
        const char *state;
        enum idem__said said;
        int code;
    } rows[] = {
        {"08006", IDEM__SAID_UNKNOWN, IDEM_EUNAVAILABLE},
        {"08P01", IDEM__SAID_UNKNOWN, IDEM_EUNAVAILABLE},
        {"57P01", IDEM__SAID_UNKNOWN, IDEM_EUNAVAILABLE},
        {"57014", IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE},
        {"40001", IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE},
        {"53100", IDEM__SAID_NEVER, IDEM_EFULL},
        {"53300", IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE},
        {"28P01", IDEM__SAID_NEVER, IDEM_EDENIED},
        {"42P05", IDEM__SAID_NEVER, IDEM_ECONFIG},
        {"XX000", IDEM__SAID_NEVER, IDEM_ECONFIG},
    };
    struct idem__pg_place place = {.len = 0};
    struct idem_error error;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        state = rows[i].state;
        memset(&error, 0, sizeof(error));
        assert_int_equal(idem__pg_error_read(/* result= */ NULL, &place,
                                             &error),
                         rows[i].said);
        assert_int_equal(error.code, rows[i].code);
        assert_non_null(strstr(error.text, rows[i].state));
    }
}
