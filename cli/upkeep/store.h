/* store.h: the commands of idem store. */
#ifndef IDEM_CLI_UPKEEP_STORE_H
#define IDEM_CLI_UPKEEP_STORE_H

#include "options/command.h"
#include "text/json.h"

#include <idem.h>
#include <idem/check.h>
#include <stdbool.h>

/* ---- idem store create and template ---- */

/* Creates the store that @store_url (NULL: the default) names. Returns an exit status. */
int cli_create(const char *store_url, bool json);

/* The statements or template that make the store of @store_url (NULL: $IDEM_STORE), for
 * free(), if its kind has any; else *@ret_text is NULL. Returns an exit status. */
int cli_schema(const char *store_url, char **ret_text);

/* ---- idem store mark-restored, create --force and set-clock -------- */

#define CLI_SQLITE_SCHEME "sqlite:"

/* cli_store_url() for an action that only the file of a sqlite: store supports. */
int cli_sqlite_url(const char *store_url, bool make, char **ret_url);

/* Marks the file of --store (may be NULL) as put back from a copy; with @may_lose makes
 * a new store in the place of a lost one. Returns an exit status. */
int cli_mark_restored(const char *store_url, bool may_lose, bool json);

/* ---- Checking the store, and more ---- */

/* A check: the caller sets the first members, and zeroes the rest. The first bad finding
 * decides its exit status. */
struct cli_check {
    bool json;
    bool quick;
    bool may_lack; /* A kind of store that has no check is skipped. */
    void (*before)(struct cli_check *check); /* Checks more; or NULL. */
    void (*after)(struct cli_check *check);  /* If nothing is bad; or NULL. */

    int code;  /* Of the first bad finding, an enum idem_code; or 0. */
    bool part; /* Something was skipped. */
    struct cli_json object;
    int stop;         /* A descriptor; see cli_stop_fd(). */
    bool stopped;     /* By a signal. */
    unsigned percent; /* Done by then. */
};

/* Prints a finding, or keeps it for the end; an idem_finding_fn. */
void cli_check_take(void *check, const struct idem_finding *finding);

/* Checks the store that @store_url (NULL: the default) names. Returns an exit status: 0
 * if nothing is bad. */
int cli_check_run(struct cli_check *check, const char *store_url);

#endif
