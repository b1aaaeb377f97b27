/* exit_status.h: the exit statuses of all commands. */
#ifndef IDEM_CLI_TEXT_EXIT_STATUS_H
#define IDEM_CLI_TEXT_EXIT_STATUS_H

/* Exit statuses; man/idem.1, EXIT STATUS. */
enum cli_exit {
    CLI_OK = 0,
    CLI_NO_RECORD = 1,     /* The key has no record. */
    CLI_OUTPUT_FAILED = 2, /* The answer could not be written to stdout. */
    CLI_REPLAY = 10,       /* idem begin only. */
    CLI_USAGE = 64,
    CLI_MISMATCH = 65,
    CLI_UNAVAILABLE = 69,
    CLI_INTERNAL = 70,
    CLI_FULL = 73,
    CLI_CORRUPT = 74,
    CLI_BUSY = 75,
    CLI_UNKNOWN = 76,
    CLI_DENIED = 77,
    CLI_CONFIG = 78,
    CLI_FAILED = 79,
    CLI_NOT_RECORDED = 80,
    CLI_OUTPUT_LOST = 81, /* idem run: on record, but not passed on. */
    CLI_NOT_KEPT = 82,    /* On record, but its output was not kept. */
    CLI_CANNOT_EXECUTE = 126,
    CLI_NOT_FOUND = 127,
};

#endif
