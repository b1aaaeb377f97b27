/* check.h: is the store as it should be, and what is found of anything else. */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "json.h"

#include <idem/check.h>

/* What was found so far; the first thing that is bad says how this ends. */
struct cli_check {
    int code; /* Of that, an enum idem_code; or 0. */
    bool json;
    struct cli_json object;
};

void cli_check_init(struct cli_check *check, bool json);

/* Prints what was found, or keeps it for the end; an idem_finding_fn. */
void cli_check_take(void *check, const struct idem_finding *finding);

/* Checks the store that @url names. 0, or an exit status after saying why. */
int cli_check_url(struct cli_check *check, const char *url);

/* The end. Returns an exit status: 0 if nothing is bad. */
int cli_check_finish(struct cli_check *check, const char *url);

/* Checks the store that @store_url (NULL: the default) names, and prints what was
 * found. Returns an exit status: 0 if nothing is bad. */
int cli_check(const char *store_url, bool json);

#endif
