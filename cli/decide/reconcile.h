/* reconcile.h: the parts of idem reconcile. */
#ifndef IDEM_CLI_DECIDE_RECONCILE_H
#define IDEM_CLI_DECIDE_RECONCILE_H

#include <idem/journal.h>

/* ---- Outcomes from the files of other hosts, and from logs -------------- */

struct cli_harvest {
    struct idem_journal *journal; /* Where the outcomes go. */
    uint64_t found;
    uint64_t damaged; /* They began like an outcome, but cannot be trusted. */
};

/* Puts the outcomes of the file @path ("-": stdin) into the journal. A file of a journal
 * has one; any other file may have several in base64, whatever surrounds them, as in the
 * lines that `idem lambda` logs and in their exports, also as JSON in JSON. 0 or an exit
 * status, after an error message. */
int cli_harvest_file(struct cli_harvest *harvest, const char *path);

/* ---- One line for each outcome that waits in a journal ------------------ */

struct cli_waiting_style {
    bool json;
    bool dry_run; /* Shows its next state. */
};

/* True of an entry that could be read. */
bool cli_waiting_known(const struct idem_journal_info *info);

/* Prints @info. @state: what it is now or, in a dry run, would be; @error: what is
 * wrong with it, if its code is not 0. An exit status. */
int cli_waiting_print(const struct cli_waiting_style *style,
                      const struct idem_journal_info *info,
                      enum idem_journal_state state,
                      const struct idem_error *error);

/* ---- Telling stores what waits in a journal ----------------------------- */

/* An entry has a checksum, but nobody signs it. So idem opens the store that an entry
 * names only if the journal is the one in which the commands of this user on this host
 * keep their outcomes. It tells the entries of any other journal, and of a log, only to
 * the store that the user named. */
struct cli_reconcile_how {
    struct cli_waiting_style style;
    bool each_its_own; /* Each outcome goes to the store that it names. */
    const char *store; /* Else: the store that the user named; NULL: none. */
    const char *from;  /* The store that the entries were meant for; NULL: for
                          @store. */
};

/* Tells stores what waits in @journal and shows what became of each outcome, or in a dry
 * run what would become of it. Shows outcomes for other stores too. An exit status: the
 * worst of all. */
int cli_reconcile_journal(struct idem_journal *journal,
                          const struct cli_reconcile_how *how);

/* The worse of two exit statuses. */
int cli_reconcile_worse(int a, int b);

#endif
