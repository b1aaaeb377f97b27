/* hook.h: somebody else's command, which is told something in JSON. */
#ifndef IDEM_CLI_INSPECT_HOOK_H
#define IDEM_CLI_INSPECT_HOOK_H

#include "text/json.h"

/* Runs @command by sh -c, with the line @json on its stdin, the sentence @text (may
 * be NULL) in its environment as IDEM_ALERT, and our stderr as its stdout, in a
 * process group of its own. One that is not done after @timeout_ms is
 * killed with its group. Its exit status; 128 + N if signal N ended it; 124 if it
 * took too long; 127 if it could not be started. */
int cli_hook(const char *command, const struct cli_json *json, const char *text,
             int64_t timeout_ms);

#endif
