/* names.h: the records of a list, noted in a file without a name.
 *
 * A list shows no results, and nothing may be asked of the store meanwhile: so
 * what is to be done with each record comes after it. A store may have many: they
 * are not kept in memory. */
#ifndef IDEM_CLI_RECORD_NAMES_H
#define IDEM_CLI_RECORD_NAMES_H

#include <idem.h>
#include <stdio.h>

struct cli_names {
    FILE *f;
    uint64_t len; /* How many were noted. */
};

struct cli_name {
    struct idem_slice scope; /* The slices until the next is read. */
    struct idem_slice key;
    struct idem_slice owner; /* From here on when it was listed. */
    uint64_t bytes;          /* Of its result and input. */
    uint64_t fence;
    enum idem_status status;
    bool retry;
    char text[2 * UINT8_MAX + IDEM_OWNER_MAX];
};

/* 0 or an exit status, after saying why. */
int cli_names_open(struct cli_names *names);
void cli_names_close(struct cli_names *names);

/* False: it could not be written; cli_names_rewind() says why. */
bool cli_names_add(struct cli_names *names, const struct idem_record *record);

/* Goes back to the first. 0 or an exit status, after saying why. */
int cli_names_rewind(struct cli_names *names);

/* The next one; false: that was all. */
bool cli_names_next(struct cli_names *names, struct cli_name *ret_name);

#endif
