/* Turns a SQLSTATE, or a message of libpq, into a code and a message of ours. */
#include "postgres/task_request.h"

#include "base/bytes.h"
#include "core/error.h"

#include <stdio.h>
#include <string.h>

/* The first row counts with whose state the SQLSTATE begins. */
static const struct state {
    const char *state;
    enum idem__said said;
    int code;
    const char *mend;
} states[] = {
    /* Another transaction was in the way, or an operator cancelled ours: it is undone. */
    {"40", IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE, ""},
    {"55P03", IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE, ""},
    {"57014", IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE, ""},
    {"57", IDEM__SAID_UNKNOWN, IDEM_EUNAVAILABLE, ""},
    {"25P03", IDEM__SAID_UNKNOWN, IDEM_EUNAVAILABLE, ""},
    /* 08P01 included: a pooler also reports it when it has lost the connection to the
     * server. */
    {"08", IDEM__SAID_UNKNOWN, IDEM_EUNAVAILABLE, ""},
    /* The server has become a replica: by now another one takes writes. */
    {"25006", IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE,
     "; name the primary, or all hosts, in the store URL"},
    {"53100", IDEM__SAID_NEVER, IDEM_EFULL, ""},
    {"53", IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE, ""},
    {"58", IDEM__SAID_NOT_APPLIED, IDEM_EUNAVAILABLE, ""},
    {"42501", IDEM__SAID_NEVER, IDEM_EDENIED,
     "; the role needs the rights of idem-postgres(7)"},
    {"28P01", IDEM__SAID_NEVER, IDEM_EDENIED, "; correct it in ~/.pgpass"},
    {"28", IDEM__SAID_NEVER, IDEM_EDENIED,
     "; create the role with createuser, and allow it in pg_hba.conf"},
    {"3D000", IDEM__SAID_NEVER, IDEM_ECONFIG, "; create it with createdb"},
    {"3F000", IDEM__SAID_NEVER, IDEM_ECONFIG, "; create it: idem store create"},
    {"42P01", IDEM__SAID_NEVER, IDEM_ECONFIG, "; create it: idem store create"},
    /* A syntax error: only the name of the schema is the user's. */
    {"42601", IDEM__SAID_NEVER, IDEM_ECONFIG,
     "; choose another schema: this name is an SQL keyword"},
    {"26000", IDEM__SAID_NEVER, IDEM_ECONFIG,
     "; a connection pooler needs prepare=no in the store URL"},
    {"42P05", IDEM__SAID_NEVER, IDEM_ECONFIG,
     "; a connection pooler needs prepare=no in the store URL"},
    {"", IDEM__SAID_NEVER, IDEM_ECONFIG, ""},
};

/* Returns the length of the character at @p, or 0 if a terminal or a JSON text cannot show
 * it. */
static size_t shown_len(const char *p)
{
    const uint8_t *bytes = (const uint8_t *)p;

    if (*bytes < 0x80) {
        return *bytes >= ' ' && *bytes != 0x7f;
    }
    if (bytes[0] == 0xc2 && bytes[1] < 0xa0) {
        return 0; /* A C1 control character. */
    }
    return idem__utf8_len(bytes, strlen(p));
}

/* Replaces in place what cannot be shown. A server writes in the encoding of its database,
 * and a message may come from a function of an application. */
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

static const struct state *row_of(const char *state)
{
    size_t i = 0;

    while (strncmp(state, states[i].state, strlen(states[i].state)) != 0) {
        i++;
    }
    return &states[i];
}

/* Copies the first line of @text to @buf, without its full stop and without secrets. */
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

enum idem__said idem__pg_error_read(const PGresult *result,
                                    const struct idem__pg_place *place,
                                    struct idem_error *ret_error)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const struct state *row;
    char buf[300];

    if (state == NULL) {
        /* Not an error of the server: libpq lost the connection. */
        tidy(PQresultErrorMessage(result), place, buf);
        (void)idem__error(ret_error, IDEM_EUNAVAILABLE, "PostgreSQL (%s): %s",
                          place->endpoint,
                          buf[0] == '\0' ? "the connection was lost" : buf);
        return IDEM__SAID_UNKNOWN;
    }
    row = row_of(state);
    tidy(text, place, buf);
    (void)idem__error(ret_error, row->code, "PostgreSQL (%s): %s (%.5s)%s",
                      place->endpoint, buf, state, row->mend);
    return row->said;
}

/* ---- No connection ---- */

/* Finds the last SQLSTATE in @text; NULL: no server answered. libpq returns no SQLSTATE
 * for a refused connection, but when it is verbose it writes it into its message: "FATAL:
 * 28P01: ...". The words after it are in the language of the server. */
static const char *find_state(const char *text)
{
    const char *found = NULL;

    while ((text = strstr(text, ":  ")) != NULL) {
        text += strlen(":  ");
        if (strspn(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 &&
            text[5] == ':') {
            found = text;
        }
    }
    return found;
}

/* Errors that have only words: a pooler refuses everything with one SQLSTATE, and libpq's
 * own errors have none. The words are English: a pooler knows no other language, and
 * idem__pg_place_plain() has libpq use it. */
static const struct {
    const char *words;
    int code;
    const char *mend;
} sentences[] = {
    {"no password supplied", IDEM_EDENIED, "; put it into ~/.pgpass"},
    {"authentication failed", IDEM_EDENIED, "; correct it in ~/.pgpass"},
    {"no pg_hba.conf entry", IDEM_EDENIED, ""},
    {"no such database", IDEM_ECONFIG, ""},
    {"no such user", IDEM_EDENIED, ""},
    {"certificate verify failed", IDEM_ECONFIG,
     "; name its authority: sslrootcert=FILE in the store URL"},
    {"does not match host name", IDEM_ECONFIG,
     "; connect to the name in its certificate"},
    {"does not support SSL", IDEM_ECONFIG,
     "; set ssl = on there, or sslmode=disable in the store URL"},
    {"root certificate file", IDEM_ECONFIG,
     "; name one that is there: sslrootcert=FILE in the store URL"},
    /* The file of a certificate or a key. */
    {"file \"", IDEM_ECONFIG, ""},
    /* A value of an option, as in "invalid port number". */
    {"invalid ", IDEM_ECONFIG, "; correct it in the store URL"},
    {"timeout expired", IDEM_EUNAVAILABLE,
     "; check whether the server or the network hangs, then run this again"},
};

static bool has_several_hosts(const struct idem__pg_place *place)
{
    return strchr(place->endpoint, ',') != NULL;
}

/* Names the host that refused: libpq tries no other one after it. */
static void refused_by_server(PGconn *conn, const struct idem__pg_place *place,
                              const char *state, const struct state *row,
                              struct idem_error *error)
{
    const char *dbname = idem__pg_place_get(place, "dbname");
    char endpoint[160];
    char buf[300];

    (void)snprintf(endpoint, sizeof(endpoint), "%.90s:%.10s/%.50s",
                   PQhost(conn), PQport(conn), dbname == NULL ? "" : dbname);
    tidy(state + strlen("28P01: "), place, buf);
    (void)idem__error(error, row->code,
                      "cannot connect to PostgreSQL (%s): %s (%.5s)%s",
                      has_several_hosts(place) ? endpoint : place->endpoint,
                      buf, state, row->mend);
}

/* Returns the reason in @text, without the host, which our message names already. */
static const char *reason_of(const char *text)
{
    const char *at = strstr(text, " failed: ");

    return strncmp(text, "connection to server ", 21) == 0 && at != NULL &&
                   at < text + strcspn(text, "\n")
               ? at + strlen(" failed: ")
               : text;
}

/* Reads @text, which has a line for each host that libpq tried. */
static int read_sentence(const char *text, const struct idem__pg_place *place,
                         struct idem_error *error)
{
    const size_t n = sizeof(sentences) / sizeof(sentences[0]);
    const char *at = NULL;
    char buf[300];
    size_t i = 0;

    while (i < n && (at = strstr(text, sentences[i].words)) == NULL) {
        i++;
    }
    while (at != NULL && at > text && at[-1] != '\n') {
        at--;
    }
    at = at == NULL ? text : at;
    tidy(has_several_hosts(place) ? at : reason_of(at), place, buf);
    return idem__error(error, i < n ? sentences[i].code : IDEM_EUNAVAILABLE,
                       "cannot connect to PostgreSQL (%s): %s%s",
                       place->endpoint, buf, i < n ? sentences[i].mend : "");
}

enum idem__said idem__pg_error_connect(PGconn *conn,
                                       const struct idem__pg_place *place,
                                       struct idem_error *ret_error)
{
    const char *text = conn == NULL ? "no memory" : PQerrorMessage(conn);
    const char *state = find_state(text);
    const struct state *row = state == NULL ? NULL : row_of(state);

    if (row != NULL && strncmp(state, "08", 2) != 0 &&
        strncmp(state, "XX", 2) != 0) {
        refused_by_server(conn, place, state, row, ret_error);
    } else {
        (void)read_sentence(text, place, ret_error);
    }
    return ret_error->code == IDEM_EUNAVAILABLE ? IDEM__SAID_NOT_APPLIED
                                                : IDEM__SAID_NEVER;
}
