/* Reads the part after "postgres:" in a URL. */
#include "postgres/place.h"

#include "base/heap.h"
#include "core/error.h"
#include "core/slice.h"
#include "store/remote/remote.h"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

#define FORM "postgres://[USER@]HOST[:PORT]/DATABASE[?OPTION=VALUE&...]"

static char *copy(const char *text)
{
    size_t len = strlen(text) + 1;
    char *to = idem__alloc(len);

    if (to != NULL) {
        memcpy(to, text, len);
    }
    return to;
}

const char *idem__pg_place_get(const struct idem__pg_place *place,
                               const char *name)
{
    size_t i;

    for (i = 0; i < place->len; i++) {
        if (strcmp(place->names[i], name) == 0) {
            return place->values[i];
        }
    }
    return NULL;
}

/* libpq marks a password with "*". It marks keys that serve instead of a password with "D"
 * (for debugging), and also a few options that are not secret. The lists have the names of
 * versions up to 18. */
bool idem__pg_option_is_secret(const char *name, const char *dispchar)
{
    static const char *const secrets[] = {"password", "sslpassword",
                                          "oauth_client_secret",
                                          "scram_client_key",
                                          "scram_server_key"};
    static const char *const shown[] = {"replication", "sslkeylogfile"};
    size_t i;

    for (i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
        if (strcmp(name, secrets[i]) == 0) {
            return true;
        }
    }
    for (i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        if (strcmp(name, shown[i]) == 0) {
            return false;
        }
    }
    return strcmp(dispchar, "*") == 0 || strcmp(dispchar, "D") == 0;
}

int idem__pg_place_set(struct idem__pg_place *place, const char *name,
                       const char *value, struct idem_error *error)
{
    size_t i = place->len;

    if (i == IDEM__PG_OPTIONS_MAX) {
        return idem__error(error, IDEM_EINVALID,
                           "the store URL has too many options");
    }
    place->names[i] = copy(name);
    place->values[i] = copy(value);
    place->secret[i] = idem__pg_option_is_secret(name, "");
    place->len++;
    return place->names[i] == NULL || place->values[i] == NULL
               ? idem__error_plain(error, IDEM_ENOMEM)
               : 0;
}

static void reverse(char *from, size_t len)
{
    size_t i;

    for (i = 0; i < len / 2; i++) {
        char c = from[i];

        from[i] = from[len - 1 - i];
        from[len - 1 - i] = c;
    }
}

void idem__pg_place_turn(struct idem__pg_place *place)
{
    static const char *const lists[] = {"host", "hostaddr", "port"};
    size_t i;
    size_t j;

    for (i = 0; i < place->len; i++) {
        for (j = 0; j < sizeof(lists) / sizeof(lists[0]); j++) {
            char *list = place->values[i];
            size_t first = strcspn(list, ",");
            size_t len = strlen(list);

            /* "a,bc" backwards is "cb,a", and each part forwards "bc,a". */
            if (strcmp(place->names[i], lists[j]) == 0 && first < len) {
                reverse(list, len);
                reverse(list, len - first - 1);
                reverse(list + len - first, first);
            }
        }
    }
}

void idem__pg_place_finish(struct idem__pg_place *place)
{
    size_t i;

    for (i = 0; i < place->len; i++) {
        idem__free(place->names[i]);
        idem__free(place->values[i]);
    }
    if (place->plain != (locale_t)0) {
        freelocale(place->plain);
    }
    memset(place, 0, sizeof(*place));
}

/* Copies the locale of this thread, with messages in English. Returns 0 if memory ran out:
 * uselocale(0) changes nothing. */
static locale_t make_plain(void)
{
    locale_t own = duplocale(uselocale((locale_t)0));
    locale_t plain =
        own == (locale_t)0 ? own : newlocale(LC_MESSAGES_MASK, "C", own);

    if (plain == (locale_t)0 && own != (locale_t)0) {
        freelocale(own);
    }
    return plain;
}

locale_t idem__pg_place_plain(const struct idem__pg_place *place)
{
    return uselocale(place->plain);
}

/* ---- Our own options ---- */

/* True for a name that needs no quotes, so that every tool reads it alike. */
static bool is_schema(struct idem_slice name)
{
    const char *p = name.base;
    size_t i;

    for (i = 0; i < name.len; i++) {
        bool digit = p[i] >= '0' && p[i] <= '9';

        if (!(p[i] >= 'a' && p[i] <= 'z') && p[i] != '_' &&
            (i == 0 || !digit)) {
            return false;
        }
    }
    return name.len > 0 && name.len <= IDEM__PG_SCHEMA_MAX;
}

static int read_word(const char *name, struct idem_slice value, const char *yes,
                     const char *no, bool *ret_yes, struct idem_error *error)
{
    *ret_yes = idem__slice_equal(value, idem_str(yes));
    if (*ret_yes || idem__slice_equal(value, idem_str(no))) {
        return 0;
    }
    return idem__error(error, IDEM_EINVALID,
                       "store: %s is \"%s\" or \"%s\", not \"%.*s\"", name, yes,
                       no, value.len > 60 ? 60 : (int)value.len,
                       (const char *)value.base);
}

/* Reads an option of ours. Returns 1, 0 if it is libpq's, or a negative code. */
static int read_own(struct idem_slice name, struct idem_slice value,
                    struct idem__pg_place *place, struct idem_error *error)
{
    int rc;

    if (idem__slice_equal(name, idem_str("schema"))) {
        if (!is_schema(value)) {
            return idem__error(error, IDEM_EINVALID,
                               "store: \"%.*s\" cannot be the schema: at most "
                               "%d of a-z 0-9 _, the first not a digit",
                               value.len > 60 ? 60 : (int)value.len,
                               (const char *)value.base, IDEM__PG_SCHEMA_MAX);
        }
        if (idem__slice_equal(value, idem_str("public"))) {
            return idem__error(
                error, IDEM_EINVALID,
                "store: schema=public, as in the URL of an ORM, holds the "
                "tables of applications: leave it out, and idem uses the "
                "schema \"idem\"");
        }
        memcpy(place->schema, value.base, value.len);
        place->schema[value.len] = '\0';
        return 1;
    }
    if (idem__slice_equal(name, idem_str("prepare"))) {
        rc = read_word("prepare", value, "yes", "no", &place->prepare, error);
        return rc == 0 ? 1 : rc;
    }
    if (idem__slice_equal(name, idem_str("clock"))) {
        rc = read_word("clock", value, "host", "server", &place->host_clock,
                       error);
        return rc == 0 ? 1 : rc;
    }
    if (idem__slice_equal(name, idem_str("cache"))) {
        char text[96]; /* A refusal shows less of it. */

        (void)snprintf(text, sizeof(text), "%.*s", (int)value.len,
                       (const char *)value.base);
        rc = idem_setting_read(IDEM__REMOTE_CACHE, "store: cache", text,
                               &place->cache_ms, error);
        return rc == 0 ? 1 : rc;
    }
    return 0;
}

/* ---- libpq's options ---- */

/* True for an option that libpq knows. It also takes "ssl=true" in a URL, for
 * sslmode=require. */
static bool is_known(struct idem_slice name)
{
    PQconninfoOption *options = PQconndefaults();
    PQconninfoOption *at;
    bool known = options == NULL || idem__slice_equal(name, idem_str("ssl"));

    for (at = options; !known && at != NULL && at->keyword != NULL; at++) {
        known = idem__slice_equal(name, idem_str(at->keyword));
    }
    PQconninfoFree(options);
    return known;
}

/* libpq ends the password at the first "@", and the host at a "/" before that. If a
 * password contains either, libpq would take the rest of it for a host, a port or a
 * database, which messages show. */
static bool is_ambiguous(const char *text, size_t len)
{
    const char *at = memchr(text, '@', len);
    const char *end = text + len;
    const char *path = text + 2;

    return at != NULL && (memchr(path, '/', (size_t)(at - path)) != NULL ||
                          memchr(at + 1, '@', (size_t)(end - at - 1)) != NULL);
}

static int refuse_option(struct idem_slice name, const char *rest,
                         struct idem_error *error)
{
    /* It may be part of a password that contains "?", so do not repeat it. */
    if (strchr(rest, '@') != NULL) {
        return idem__error(error, IDEM_EINVALID,
                           "store: an option of the URL is unknown; write " FORM
                           ", with %%XX for special characters");
    }
    return idem__error(
        error, IDEM_EINVALID,
        "unknown option \"%.*s\" in the store URL; a PostgreSQL store "
        "takes schema, prepare, clock and cache, and the parameters of libpq",
        name.len > 60 ? 60 : (int)name.len, (const char *)name.base);
}

/* Reads our options from @text, and writes the rest of it, for libpq, to @uri. */
static int divide(const char *text, char *uri, struct idem__pg_place *place,
                  struct idem_error *error)
{
    const char *at = strchr(text, '?');
    size_t len = at == NULL ? strlen(text) : (size_t)(at - text);
    char join = '?';
    int own = 0;

    if (is_ambiguous(text, len)) {
        return idem__error(error, IDEM_EINVALID,
                           "store: write \"@\" in a user name, a password or a "
                           "database as %%40, and \"/\" as %%2F");
    }
    uri += sprintf(uri, "postgresql:%.*s", (int)len, text);
    while (own >= 0 && at != NULL && at[1] != '\0') {
        const char *start = at + 1;
        const char *equals;

        at = strchr(start, '&');
        len = at == NULL ? strlen(start) : (size_t)(at - start);
        equals = memchr(start, '=', len);
        if (equals == NULL) {
            return idem__error(error, IDEM_EINVALID,
                               "store: an option of the URL is not NAME=VALUE; "
                               "write " FORM);
        }
        own =
            read_own(idem_bytes(start, (size_t)(equals - start)),
                     idem_bytes(equals + 1, len - (size_t)(equals - start) - 1),
                     place, error);
        if (own == 0 &&
            !is_known(idem_bytes(start, (size_t)(equals - start)))) {
            return refuse_option(idem_bytes(start, (size_t)(equals - start)),
                                 start, error);
        }
        if (own == 0) {
            uri += sprintf(uri, "%c%.*s", join, (int)len, start);
            join = '&';
        }
    }
    return own < 0 ? own : 0;
}

static int take_options(struct idem__pg_place *place,
                        const PQconninfoOption *options,
                        struct idem_error *error)
{
    int rc = 0;

    for (; rc == 0 && options->keyword != NULL; options++) {
        if (options->val != NULL) {
            rc = idem__pg_place_set(place, options->keyword, options->val,
                                    error);
        }
        if (rc == 0 && options->val != NULL) {
            place->secret[place->len - 1] =
                idem__pg_option_is_secret(options->keyword, options->dispchar);
        }
    }
    return rc;
}

/* Parses @uri. libpq's own message is thrown away: it repeats the URL with the
 * password. */
static int parse(const char *uri, struct idem__pg_place *place,
                 struct idem_error *error)
{
    char *why = NULL;
    PQconninfoOption *options = PQconninfoParse(uri, &why);
    int rc;

    PQfreemem(why);
    if (options == NULL) {
        return idem__error(error, IDEM_EINVALID,
                           "the store URL cannot be read; write " FORM
                           ", with %%XX for special characters");
    }
    rc = take_options(place, options, error);
    PQconninfoFree(options);
    return rc;
}

/* ---- What libpq reads elsewhere ---- */

static const char *option(const PQconninfoOption *options, const char *name)
{
    for (; options != NULL && options->keyword != NULL; options++) {
        if (strcmp(options->keyword, name) == 0) {
            return options->val == NULL || options->val[0] == '\0'
                       ? NULL
                       : options->val;
        }
    }
    return NULL;
}

#define STOP "stop-here"

/* Has libpq combine the URL with environment, service file and defaults. It does so before
 * it checks the value of channel_binding, and the invalid one here ends the attempt before
 * it connects. */
static PGconn *probe(struct idem__pg_place *place)
{
    const char *names[IDEM__PG_OPTIONS_MAX + 2] = {NULL};
    const char *values[IDEM__PG_OPTIONS_MAX + 2] = {NULL};
    size_t n = 0;
    size_t i;

    for (i = 0; i < place->len; i++) {
        if (strcmp(place->names[i], "channel_binding") != 0) {
            names[n] = place->names[i];
            values[n++] = place->values[i];
        }
    }
    names[n] = "channel_binding";
    values[n] = STOP;
    return PQconnectStartParams(names, values, /* expand_dbname= */ 0);
}

/* A host name may begin with "127.", too, so the text has to be an address. */
static bool is_loopback(const char *host, size_t len)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr address;

    if ((len == 9 && memcmp(host, "localhost", 9) == 0) ||
        (len == 3 && memcmp(host, "::1", 3) == 0)) {
        return true;
    }
    if (len >= sizeof(text)) {
        return false;
    }
    memcpy(text, host, len);
    text[len] = '\0';
    return inet_pton(AF_INET, text, &address) == 1 &&
           ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool idem__pg_hosts_are_local(const char *hosts)
{
    while (*hosts != '\0') {
        size_t len = strcspn(hosts, ",");

        if (hosts[0] != '/' && hosts[0] != '@' && len > 0 &&
            !is_loopback(hosts, len)) {
            return false;
        }
        hosts += len + (hosts[len] == ',');
    }
    return true;
}

static int set_default(struct idem__pg_place *place, const char *name,
                       const char *value, struct idem_error *error)
{
    return value == NULL || idem__pg_place_get(place, name) != NULL
               ? 0
               : idem__pg_place_set(place, name, value, error);
}

/* Reads connect_timeout. The limit is 5 s where that is missing, is above an hour, or
 * would mean to wait for ever (0 or less). */
static int64_t read_connect_ms(const char *seconds)
{
    enum {
        CONNECT_MS = 5000,
        SECONDS_MAX = 3600
    };
    long n = seconds == NULL ? 0 : strtol(seconds, NULL, 10);

    return n <= 0 || n > SECONDS_MAX ? CONNECT_MS : (int64_t)n * 1000;
}

/* Writes HOST:PORT,HOST:PORT/DATABASE. All hosts may share one port. */
static void name_endpoint(struct idem__pg_place *place, const char *hosts,
                          const char *ports, const char *dbname)
{
    enum {
        CAP = sizeof(place->endpoint) - 64, /* For the hosts. */
    };
    char *to = place->endpoint;
    size_t len = 0;
    bool more;

    do {
        int host = (int)strcspn(hosts, ",");
        int port = (int)strcspn(ports, ",");
        bool colon = memchr(hosts, ':', (size_t)host) != NULL;

        more = hosts[host] == ',';
        (void)snprintf(to + len, CAP - len,
                       colon ? "[%.*s]:%.*s%s" : "%.*s:%.*s%s", host, hosts,
                       port == 0 ? 4 : port, port == 0 ? "5432" : ports,
                       more ? "," : "");
        len += strlen(to + len);
        hosts += host + more;
        ports += ports[port] == ',' ? port + 1 : 0;
    } while (more && len + 1 < CAP);
    (void)snprintf(to + len, 64, "/%.60s", dbname);
}

/* Keeps the values found now for every later connection, and for the URL on record: the
 * environment may change, and another process has another one. */
static int settle(struct idem__pg_place *place, const PQconninfoOption *found,
                  struct idem_error *error)
{
    const char *host = option(found, "host");
    const char *address = option(found, "hostaddr");
    const char *port = option(found, "port");
    const char *dbname = option(found, "dbname");
    const char *attrs = option(found, "target_session_attrs");
    const char *at = host != NULL ? host : address;
    static const char *const kept[] = {"host", "hostaddr", "port", "dbname",
                                       "user"};
    int rc = 0;
    size_t i;

    place->connect_ms = read_connect_ms(option(found, "connect_timeout"));
    place->local =
        at == NULL || (idem__pg_hosts_are_local(at) &&
                       (address == NULL || idem__pg_hosts_are_local(address)));
    name_endpoint(place, at == NULL ? "local socket" : at,
                  port == NULL ? "5432" : port, dbname == NULL ? "" : dbname);
    for (i = 0; rc == 0 && i < sizeof(kept) / sizeof(kept[0]); i++) {
        rc = set_default(place, kept[i], option(found, kept[i]), error);
    }
    /* Of several hosts, connect to the one that takes writes. */
    if (rc == 0 && at != NULL && strchr(at, ',') != NULL &&
        (attrs == NULL || strcmp(attrs, "any") == 0)) {
        rc = set_default(place, "target_session_attrs", "read-write", error);
    }
    rc = rc != 0
             ? rc
             : set_default(place, "fallback_application_name", "idem", error);
    return rc != 0 ? rc
                   : idem__pg_place_secure(place, option(found, "sslmode"),
                                           option(found, "sslrootcert"), error);
}

/* libpq could not combine the settings: a service is in no file, say, or there are more
 * ports than hosts. */
static int not_put_together(PGconn *conn, const struct idem__pg_place *place,
                            struct idem_error *error)
{
    char why[160];

    (void)snprintf(why, sizeof(why), "%s", PQerrorMessage(conn));
    why[strcspn(why, "\r\n")] = '\0';
    idem__pg_place_hide(place, why);
    return idem__error(error, IDEM_ECONFIG,
                       "the store URL does not lead to a database: %s", why);
}

static int complete(struct idem__pg_place *place, struct idem_error *error)
{
    PGconn *conn = probe(place);
    PQconninfoOption *found = conn == NULL ? NULL : PQconninfo(conn);
    int rc;

    if (conn == NULL || found == NULL) {
        rc = idem__error_plain(error, IDEM_ENOMEM);
    } else if (strstr(PQerrorMessage(conn), STOP) == NULL) {
        rc = not_put_together(conn, place, error);
    } else {
        rc = settle(place, found, error);
    }
    PQconninfoFree(found);
    PQfinish(conn);
    return rc;
}

int idem__pg_place_read(const char *text, struct idem__pg_place *ret_place,
                        struct idem_error *ret_error)
{
    char *uri;
    int rc;

    memset(ret_place, 0, sizeof(*ret_place));
    (void)strcpy(ret_place->schema, "idem");
    ret_place->prepare = true;
    ret_place->plain = make_plain();
    if (strncmp(text, "//", 2) != 0) {
        idem__pg_place_finish(ret_place);
        return idem__error(ret_error, IDEM_EINVALID, "store: write " FORM);
    }
    uri = idem__alloc(strlen(text) + 32);
    if (uri == NULL) {
        idem__pg_place_finish(ret_place);
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = divide(text, uri, ret_place, ret_error);
    rc = rc != 0 ? rc : parse(uri, ret_place, ret_error);
    rc = rc != 0 ? rc : complete(ret_place, ret_error);
    rc = rc != 0 ? rc : idem__pg_place_write(ret_place, ret_error);
    idem__free(uri);
    if (rc != 0) {
        idem__pg_place_finish(ret_place);
    }
    return rc;
}
