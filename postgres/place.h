/* Which database a store is in and how to connect to it: the part after "postgres:" in a
 * URL, and the settings that libpq reads elsewhere. */
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
    bool secret[IDEM__PG_OPTIONS_MAX]; /* The value is never shown. */
    size_t len;

    char schema[IDEM__PG_SCHEMA_MAX + 1];
    bool prepare;    /* Named statements may be used. */
    bool host_clock; /* This machine's clock counts, not the server's. */

    int64_t cache_ms; /* How old a record in memory may be; 0: there is none. */

    locale_t plain; /* The process's, with messages in English; or 0. */

    bool own_ca;        /* sslrootcert is the bundle of this system. */
    int64_t connect_ms; /* At most, for a connection to one of its hosts. */
    bool local;         /* Over a Unix socket, or this machine's loopback. */
    char endpoint[256]; /* HOST:PORT/DATABASE, for messages. */
    char url[IDEM_STORE_URL_MAX + 1]; /* Without secrets. */
};

/* Reads @text into *@ret_place. Its error messages never repeat what may be a password.
 *
 * IDEM_EINVALID, IDEM_ECONFIG, IDEM_ENOMEM
 */
int idem__pg_place_read(const char *text, struct idem__pg_place *ret_place,
                        struct idem_error *ret_error);
void idem__pg_place_finish(struct idem__pg_place *place);

/* Has libpq write its messages in English while this thread connects, because error.c goes
 * by their words, and the program may have set any locale. Returns the locale to give to
 * uselocale() after that. */
locale_t idem__pg_place_plain(const struct idem__pg_place *place);

/* Moves the first of several hosts to the end of the list. */
void idem__pg_place_turn(struct idem__pg_place *place);

/* ---- For the files of this room that make a place ---- */

/* The value of option @name, or NULL. */
const char *idem__pg_place_get(const struct idem__pg_place *place,
                               const char *name);

/* True if the value of option @name is a secret. @dispchar is libpq's word on how to show
 * the option (PQconninfoOption), "" where that is not known. */
bool idem__pg_option_is_secret(const char *name, const char *dispchar);

/* Sets option @name. 0, IDEM_EINVALID or IDEM_ENOMEM. */
int idem__pg_place_set(struct idem__pg_place *place, const char *name,
                       const char *value, struct idem_error *error);

/* True if no host in @hosts, a list as libpq takes it, is another machine. */
bool idem__pg_hosts_are_local(const char *hosts);

/* Requires another machine to prove its identity, unless the user has set sslmode:
 * place_url.c. @sslmode and @sslrootcert are the values that libpq reads elsewhere, or
 * NULL. */
int idem__pg_place_secure(struct idem__pg_place *place, const char *sslmode,
                          const char *sslrootcert, struct idem_error *error);

/* Sets place->url: place_url.c. */
int idem__pg_place_write(struct idem__pg_place *place,
                         struct idem_error *error);

/* Replaces each secret of @place in @text with stars. */
void idem__pg_place_hide(const struct idem__pg_place *place, char *text);

#endif
