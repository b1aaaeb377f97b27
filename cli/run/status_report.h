/* status_report.h: the report of a run, for programs. An exit status may be the
 * command's or ours; the report shows which. */
#ifndef IDEM_CLI_RUN_STATUS_REPORT_H
#define IDEM_CLI_RUN_STATUS_REPORT_H

#include <idem.h>

struct status_report {
    struct idem_slice scope;
    struct idem_slice key;
    const char *verdict; /* NULL: the store gave none. */
    const char *status;  /* The status on record now: "completed" ...; NULL. */
    bool executed;       /* The command was run by us. */
    bool recorded;       /* How that ended is on record. */
    int exit_status;     /* The command's, run or replayed; -1: none. */
    int signal;          /* That ended it; 0: none. */
    bool not_kept;       /* The record has lost its output. */
    uint64_t replayed_bytes;
    uint64_t fence; /* 0: no record was seen. */
    uint32_t attempts;
    bool takeover;
    bool busy;
    int64_t lease_left_ms; /* BUSY: of the owner's lease. */
    char *journal;         /* Where the outcome waits; NULL: it does not. */
    char error[sizeof(((struct idem_error *)0)->text)]; /* Empty: none. */
};

void status_report_init(struct status_report *report, struct idem_slice scope,
                        struct idem_slice key);

/* The answer to begin. */
void status_report_set_attempt(struct status_report *report,
                               const struct idem_attempt *attempt);

void status_report_set_error(struct status_report *report, const char *text);

/* The outcome waits in the file @path, which the report frees. */
void status_report_set_journal(struct status_report *report, char *path);
void status_report_finish(struct status_report *report);

/* Writes the report with @status, our exit status, as one line of JSON to @fd. A
 * failure is reported, and changes nothing else. */
void status_report_tell(const struct status_report *report, int status, int fd);

#endif
