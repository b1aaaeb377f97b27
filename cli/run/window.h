/* window.h: --every: one key for each calendar window, and the window before. */
#ifndef IDEM_CLI_RUN_WINDOW_H
#define IDEM_CLI_RUN_WINDOW_H

#include "request/period.h"
#include "run/run.h"

/* The windows of a run, taken once, from the clock of this host. */
struct windows {
    size_t key_len; /* Of the key without a window. */
    int64_t retention_ms;
    struct cli_window current;
    struct cli_window before;
};

/* @run->asked is complete. Its key gets the current window, and its outcome is kept
 * until the window after that is over. 0, or a usage error. */
int windows_choose(struct windows *ret_windows, struct run *run,
                   const struct cli_command *command);

/* The key of @run is that of @window from now on. 0, or a usage error: too long. */
int windows_take(const struct windows *windows, struct run *run,
                 const struct cli_window *window);

/* The name of the window that the key of @run has; empty without --every. */
struct idem_slice windows_name_of(const struct run *run);

/* Looks whether work of the window before is still to be done, or may be. 0, or an exit
 * status after saying why. The store is open. */
int windows_look_back(const struct windows *windows, struct run *run,
                      bool *ret_left);

#endif
