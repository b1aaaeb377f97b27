/* check.h: is the store as it should be, and what is found of anything else. */
#ifndef IDEM_CLI_UPKEEP_CHECK_H
#define IDEM_CLI_UPKEEP_CHECK_H

#include "options/command.h"
#include "text/json.h"

#include <idem.h>
#include <idem/check.h>

/* The findings so far; the first thing that is bad says how this ends. */
struct cli_check {
    int code; /* Of that, an enum idem_code; or 0. */
    bool json;
    bool part; /* Something was not looked at. */
    struct cli_json object;

    bool quick;
    bool may_lack;    /* A kind of store that has no check is skipped. */
    int stop;         /* A descriptor; see stop.h. */
    bool stopped;     /* By a signal. */
    unsigned percent; /* Done by then. */
};

void cli_check_init(struct cli_check *check, bool json);

/* Prints what was found, or keeps it for the end; an idem_finding_fn. */
void cli_check_take(void *check, const struct idem_finding *finding);

/* Checks the store that @url names. 0, or an exit status after saying why. */
int cli_check_url(struct cli_check *check, const char *url);

/* The end. Returns an exit status: 0 if nothing is bad. */
int cli_check_finish(struct cli_check *check, const char *url);

struct cli_check_args {
    bool json;
    bool quick;
    const char *store; /* NULL: the default. */
};

/* idem store check. Returns an exit status: 0 if nothing is bad. */
int cli_check(const struct cli_check_args *args);

#endif
