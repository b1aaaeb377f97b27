/* From a SQLSTATE to a code of ours. */
#include "postgres/error.h"

#include "base/utf8.h"
#include "core/error.h"

#include <stdio.h>
#include <string.h>

/* The first that a SQLSTATE begins with counts. */
static const struct {
    const char *state;
    enum idem__pg_said said;
    int code;
    const char *mend;
} states[] = {
    /* Another transaction was in the way, or an operator: it is undone. */
    {"40", IDEM__PG_NOT_APPLIED, IDEM_EUNAVAILABLE, ""},
    {"55P03", IDEM__PG_NOT_APPLIED, IDEM_EUNAVAILABLE, ""},
    {"57014", IDEM__PG_NOT_APPLIED, IDEM_EUNAVAILABLE, ""},
    {"57", IDEM__PG_UNKNOWN, IDEM_EUNAVAILABLE, ""},
    {"25P03", IDEM__PG_UNKNOWN, IDEM_EUNAVAILABLE, ""},
    {"08", IDEM__PG_UNKNOWN, IDEM_EUNAVAILABLE, ""},
    /* A server that has become a replica: another one takes writes by now. */
    {"25006", IDEM__PG_NOT_APPLIED, IDEM_EUNAVAILABLE, ""},
    {"53100", IDEM__PG_NEVER, IDEM_EFULL, ""},
    {"53", IDEM__PG_NOT_APPLIED, IDEM_EUNAVAILABLE, ""},
    {"58", IDEM__PG_NOT_APPLIED, IDEM_EUNAVAILABLE, ""},
    {"42501", IDEM__PG_NEVER, IDEM_EDENIED,
     ": docs/postgresql.md says what the role must be granted"},
    {"28", IDEM__PG_NEVER, IDEM_EDENIED, ""},
    {"3D000", IDEM__PG_NEVER, IDEM_ECONFIG, ""},
    {"3F000", IDEM__PG_NEVER, IDEM_ECONFIG, ": idem store create makes it"},
    {"42P01", IDEM__PG_NEVER, IDEM_ECONFIG, ": idem store create makes it"},
    {"26000", IDEM__PG_NEVER, IDEM_ECONFIG,
     ": a pooler in between needs prepare=no in the store URL"},
    {"42P05", IDEM__PG_NEVER, IDEM_ECONFIG,
     ": a pooler in between needs prepare=no in the store URL"},
    {"08P01", IDEM__PG_NEVER, IDEM_ECONFIG, ""},
    {"", IDEM__PG_NEVER, IDEM_ECONFIG, ""},
};

/* Bytes of the character at @p that a terminal and a JSON text can take; 0: none. */
static size_t shown_len(const char *p)
{
    const uint8_t *bytes = (const uint8_t *)p;

    if (*bytes < 0x80) {
        return *bytes >= ' ' && *bytes != 0x7f;
    }
    if (bytes[0] == 0xc2 && bytes[1] < 0xa0) {
        return 0; /* Control characters, too. */
    }
    return idem__utf8_len(bytes, strlen(p));
}

/* A server writes in the encoding of its database, and what others raise in it. */
static void make_plain(char *text)
{
    while (*text != '\0') {
        size_t len = shown_len(text);

        if (len == 0) {
            *text = '?';
            len = 1;
        }
        text += len;
    }
}

/* One line, without a full stop, and without a password. */
static void tidy(const char *text, const struct idem__pg_place *place,
                 char buf[300])
{
    size_t len;

    (void)snprintf(buf, 300, "%s", text == NULL ? "" : text);
    len = strcspn(buf, "\r\n");
    while (len > 0 && (buf[len - 1] == '.' || buf[len - 1] == ' ')) {
        len--;
    }
    buf[len] = '\0';
    idem__pg_place_hide(place, buf);
    make_plain(buf);
}

enum idem__pg_said idem__pg_error_read(const PGresult *result,
                                       const struct idem__pg_place *place,
                                       struct idem_error *ret_error)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    char buf[300];
    size_t i = 0;

    if (state == NULL) {
        /* Not the server's: libpq lost the connection. */
        tidy(PQresultErrorMessage(result), place, buf);
        (void)idem__error(ret_error, IDEM_EUNAVAILABLE, "PostgreSQL (%s): %s",
                          place->endpoint,
                          buf[0] == '\0' ? "the connection was lost" : buf);
        return IDEM__PG_UNKNOWN;
    }
    while (strncmp(state, states[i].state, strlen(states[i].state)) != 0) {
        i++;
    }
    tidy(text, place, buf);
    (void)idem__error(ret_error, states[i].code, "PostgreSQL (%s): %s (%.5s)%s",
                      place->endpoint, buf, state, states[i].mend);
    return states[i].said;
}

/* libpq gives no SQLSTATE for a connection that was refused: what it says in English,
 * whatever the language of its own messages, comes from the server. */
static bool is_refusal(const char *text)
{
    static const char *const words[] = {
        "password authentication failed", "no password supplied",
        "no pg_hba.conf entry",           "authentication failed",
        "is not permitted to log in",
    };
    size_t i;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strstr(text, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static bool is_setting(const char *text)
{
    return (strstr(text, "database \"") != NULL &&
            strstr(text, "does not exist") != NULL) ||
           strstr(text, "certificate verify failed") != NULL ||
           strstr(text, "does not match host name") != NULL ||
           strstr(text, "does not support SSL") != NULL ||
           strstr(text, "root certificate file") != NULL;
}

enum idem__pg_said idem__pg_error_connect(PGconn *conn,
                                          const struct idem__pg_place *place,
                                          struct idem_error *ret_error)
{
    const char *text = conn == NULL ? "no memory" : PQerrorMessage(conn);
    char buf[300];
    int code = is_refusal(text)   ? IDEM_EDENIED
               : is_setting(text) ? IDEM_ECONFIG
                                  : IDEM_EUNAVAILABLE;

    tidy(text, place, buf);
    (void)idem__error(ret_error, code, "cannot connect to PostgreSQL (%s): %s",
                      place->endpoint, buf);
    return code == IDEM_EUNAVAILABLE ? IDEM__PG_NOT_APPLIED : IDEM__PG_NEVER;
}
