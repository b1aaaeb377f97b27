/* list.h: the parts of idem list.
 *
 *     list.c          options, which records, the walk, and what comes after them
 *     list_rows.c     columns and rows
 *     list_order.c    in which order, and where it goes on
 */
#ifndef IDEM_CLI_INSPECT_LIST_H
#define IDEM_CLI_INSPECT_LIST_H

#include "inspect/list_order.h"
#include "options/command.h"
#include "record/fields.h"

struct list_args {
    const char *statuses;
    bool overdue;
    bool failed;
    bool all;
    const char *scope;
    const char *match;
    int64_t since_ms;
    const char *fields;
    bool reverse;
    uint64_t limit;
    const char *after;
    bool json;
    const char *store;
};

struct listing {
    const struct list_args *args; /* As the command line says. */
    struct cli_fields fields;
    bool is_tty; /* For eyes: headings, ages, local time. */
    bool tabs;   /* --fields in a pipe: nothing is padded. */
    struct cli_list_order order;
    const char *looking; /* The text of the progress. */
    uint64_t shown;      /* As they came, not sorted. */
    bool more;           /* Than --limit shows; for certain. */
    bool maybe_more;
    int status; /* Of the whole command, so far. */
    uint64_t corrupt;
    bool begun; /* The first row, or the headings, are printed. */
};

/* ---- list_rows.c: 0 or an exit status, after saying why ---- */

/* The columns: --fields, else what fits. */
int listing_choose_fields(const struct cli_command *command,
                          struct listing *listing);

/* With the first row: a store that cannot be read has no heading, and while it is
 * looked through the terminal shows how far it is. */
void listing_begin_output(struct listing *listing);

int listing_print(FILE *f, const struct listing *listing, int code,
                  const struct idem_record *r);

/* Keeps the line until all of them can be sorted. */
int listing_keep(struct listing *listing, int code,
                 const struct idem_record *r);

#endif
