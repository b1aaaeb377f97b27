/* Which database, where, and how: the part after "postgres:" in a URL, and what libpq
 * reads beside it. */
#ifndef IDEM_POSTGRES_PLACE_H
#define IDEM_POSTGRES_PLACE_H

#include <idem.h>
#include <locale.h>

enum {
    IDEM__PG_OPTIONS_MAX = 80,
    IDEM__PG_SCHEMA_MAX = 63,
};

struct idem__pg_place {
    /* For PQconnectStartParams(): NULL at the end; the place's own memory. */
    char *names[IDEM__PG_OPTIONS_MAX + 1];
    char *values[IDEM__PG_OPTIONS_MAX + 1];
    bool secret[IDEM__PG_OPTIONS_MAX]; /* The value is shown to nobody. */
    size_t len;

    char schema[IDEM__PG_SCHEMA_MAX + 1];
    bool prepare;    /* Named statements may be used. */
    bool host_clock; /* The time is that of this machine. */

    locale_t plain; /* That of the process, but for its messages; or 0. */

    bool own_ca;        /* sslrootcert is what this system has. */
    int64_t connect_ms; /* At most, for a connection to one of its hosts. */
    bool local;         /* Over a Unix socket, or this machine's loopback. */
    char endpoint[256]; /* HOST:PORT/DATABASE, for sentences. */
    char url[IDEM_STORE_URL_MAX + 1]; /* Without a secret. */
};

/* Reads @text into *@ret_place. No sentence of it repeats what may be a password.
 *
 * IDEM_EINVALID, IDEM_ECONFIG, IDEM_ENOMEM
 */
int idem__pg_place_read(const char *text, struct idem__pg_place *ret_place,
                        struct idem_error *ret_error);
void idem__pg_place_finish(struct idem__pg_place *place);

/* Has libpq write the sentences of a connection in English while this thread makes it,
 * for error.c goes by their words; the host of the library may have set any locale.
 * Returns the locale that uselocale() is given after that. */
locale_t idem__pg_place_plain(const struct idem__pg_place *place);

/* Has the next of several hosts come first. */
void idem__pg_place_turn(struct idem__pg_place *place);

/* ---- For the files of this room that make a place ---- */

/* The value of option @name, or NULL. */
const char *idem__pg_place_get(const struct idem__pg_place *place,
                               const char *name);

/* True if the value of option @name is a secret. @dispchar is what libpq says of how the
 * option is shown, "" where that is not known. */
bool idem__pg_option_is_secret(const char *name, const char *dispchar);

/* Sets option @name. 0, IDEM_EINVALID or IDEM_ENOMEM. */
int idem__pg_place_set(struct idem__pg_place *place, const char *name,
                       const char *value, struct idem_error *error);

/* True if no host of @hosts, a list of libpq's, is another machine. */
bool idem__pg_hosts_are_local(const char *hosts);

/* Demands that another machine proves who it is, unless somebody has said how it is
 * connected with: place_url.c. @sslmode and @sslrootcert are what libpq reads
 * elsewhere, or NULL. */
int idem__pg_place_secure(struct idem__pg_place *place, const char *sslmode,
                          const char *sslrootcert, struct idem_error *error);

/* Sets place->url: place_url.c. */
int idem__pg_place_write(struct idem__pg_place *place,
                         struct idem_error *error);

/* Puts stars in the place of each secret of @place in @text. */
void idem__pg_place_hide(const struct idem__pg_place *place, char *text);

#endif
