/* output.h: that everything reached standard output. */
#ifndef IDEM_CLI_TEXT_OUTPUT_H
#define IDEM_CLI_TEXT_OUTPUT_H

/* Flushes stdout. @status; where that says that all is well and not everything
 * could be written, CLI_OUTPUT_FAILED after saying so. main() ends every
 * command with it. */
int cli_finish_output(int status);

#endif
