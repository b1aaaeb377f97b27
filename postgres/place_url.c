/* Writes the URL by which any process finds a place, without its secrets, and sets up TLS
 * to another machine. */
#include "postgres/place.h"

#include "base/host.h"
#include "core/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* True for an option that does not decide where a connection leads, is secret, or is
 * written elsewhere in the URL. */
static bool is_left_out(const struct idem__pg_place *place, size_t i)
{
    const char *name = place->names[i];

    return strcmp(name, "fallback_application_name") == 0 ||
           strcmp(name, "dbname") == 0 || place->secret[i] ||
           (place->own_ca && strcmp(name, "sslrootcert") == 0);
}

/* Returns the option after @last in the order of the names, so that one place has one URL;
 * place->len after the last option. */
static size_t next_option(const struct idem__pg_place *place, const char *last)
{
    size_t next = place->len;
    size_t i;

    for (i = 0; i < place->len; i++) {
        if ((last == NULL || strcmp(place->names[i], last) > 0) &&
            (next == place->len ||
             strcmp(place->names[i], place->names[next]) < 0)) {
            next = i;
        }
    }
    return next;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || (c != '\0' && strchr("-_.,/~", c) != NULL);
}

/* Adds @text, escaped, to the *@len bytes of @url. *@len also counts what does not fit. */
static void add_escaped(char *url, size_t *len, const char *text)
{
    char one[4];

    for (; *text != '\0'; text++) {
        (void)snprintf(one, sizeof(one), is_plain(*text) ? "%c" : "%%%02X",
                       (unsigned)(unsigned char)*text);
        if (*len + strlen(one) <= IDEM_STORE_URL_MAX) {
            (void)strcpy(url + *len, one);
        }
        *len += strlen(one);
    }
}

static void add(char *url, size_t *len, const char *text)
{
    if (*len + strlen(text) <= IDEM_STORE_URL_MAX) {
        (void)strcpy(url + *len, text);
    }
    *len += strlen(text);
}

static void add_option(char *url, size_t *len, const char *name,
                       const char *value)
{
    add(url, len, strchr(url, '?') == NULL ? "?" : "&");
    add(url, len, name);
    add(url, len, "=");
    add_escaped(url, len, value);
}

int idem__pg_place_write(struct idem__pg_place *place, struct idem_error *error)
{
    const char *dbname = idem__pg_place_get(place, "dbname");
    size_t len = 0;
    size_t i;

    add(place->url, &len, "postgres:///");
    add_escaped(place->url, &len, dbname == NULL ? "" : dbname);
    for (i = next_option(place, NULL); i < place->len;
         i = next_option(place, place->names[i])) {
        if (!is_left_out(place, i)) {
            add_option(place->url, &len, place->names[i], place->values[i]);
        }
    }
    if (strcmp(place->schema, "idem") != 0) {
        add_option(place->url, &len, "schema", place->schema);
    }
    if (!place->prepare) {
        add_option(place->url, &len, "prepare", "no");
    }
    /* A process that opens this URL must count leases by the same clock. */
    if (place->host_clock) {
        add_option(place->url, &len, "clock", "host");
    }
    if (len > IDEM_STORE_URL_MAX) {
        return idem__error(error, IDEM_EINVALID,
                           "store: the URL is too long: %zu bytes with the "
                           "settings that libpq adds, at most %d",
                           len, IDEM_STORE_URL_MAX);
    }
    return 0;
}

void idem__pg_place_hide(const struct idem__pg_place *place, char *text)
{
    size_t i;

    for (i = 0; i < place->len; i++) {
        const char *secret = place->values[i];
        char *at;

        while (place->secret[i] && secret[0] != '\0' &&
               (at = strstr(text, secret)) != NULL) {
            /* A secret that is all stars would be found for ever. */
            memset(at, secret[0] == '*' ? '-' : '*', strlen(secret));
        }
    }
}

/* ---- TLS: verified, unless the user has set sslmode ---- */

/* True if the file exists that libpq uses by default. */
static bool has_root_file(void)
{
    const char *home = getenv("HOME");
    char path[512];

    if (home == NULL) {
        return false;
    }
    (void)snprintf(path, sizeof(path), "%.400s/.postgresql/root.crt", home);
    return access(path, R_OK) == 0;
}

/* True if the user has set sslmode. libpq's default is "prefer", so that value alone does
 * not show that it was set. */
static bool is_said(const char *sslmode)
{
    const char *env = getenv("PGSSLMODE");

    return (env != NULL && env[0] != '\0') ||
           (sslmode != NULL && strcmp(sslmode, "prefer") != 0);
}

int idem__pg_place_secure(struct idem__pg_place *place, const char *sslmode,
                          const char *sslrootcert, struct idem_error *error)
{
    const char *mode = idem__pg_place_get(place, "sslmode");
    const char *ca;
    int rc = 0;

    if (mode == NULL && is_said(sslmode)) {
        mode = sslmode;
    }
    if (mode == NULL && !place->local) {
        mode = "verify-full";
        rc = idem__pg_place_set(place, "sslmode", mode, error);
    }
    if (rc != 0 || mode == NULL || strcmp(mode, "verify-full") != 0 ||
        sslrootcert != NULL || has_root_file()) {
        return rc;
    }
    /* libpq 15 does not find the certificates of the system by itself. */
    ca = idem__ca_file(NULL, "");
    place->own_ca = ca != NULL;
    return ca == NULL ? 0 : idem__pg_place_set(place, "sslrootcert", ca, error);
}
