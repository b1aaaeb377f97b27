/* harvest.h: outcomes from the files of other hosts, and from logs. */
#ifndef IDEM_CLI_DECIDE_HARVEST_H
#define IDEM_CLI_DECIDE_HARVEST_H

#include <idem/journal.h>

struct cli_harvest {
    struct idem_journal *journal; /* Where they go. */
    uint64_t found;
    uint64_t damaged; /* That began like one, and cannot be trusted. */
};

/* Takes up what is in the file @path ("-": stdin): the one outcome, if it is a file
 * of a journal; else all that it has in base64, whatever surrounds it, as in
 * the lines that `idem lambda` logs and in their exports, JSON in JSON too. 0
 * or an exit status, after saying why. */
int cli_harvest_file(struct cli_harvest *harvest, const char *path);

#endif
