/* Descriptors that a command must not inherit from us. */
#ifndef IDEM_CLI_PROCESS_DESCRIPTORS_H
#define IDEM_CLI_PROCESS_DESCRIPTORS_H

#include <stdbool.h>

enum {
    CLI_DESCRIPTORS = 256 /* Those above are not looked at. */
};

/* Which descriptors are open. */
struct cli_descriptors {
    bool open[CLI_DESCRIPTORS];
};

void cli_descriptors_note(struct cli_descriptors *ret_noted);

/* Marks all that were opened since as close-on-exec. */
void cli_descriptors_keep(const struct cli_descriptors *noted);

/* Makes sure that descriptors 0 to 2 are open, so that no file of ours becomes
 * one of them: a closed one fails as if it still were. */
void cli_open_std_fds(void);

#endif
