/* lambda.h: the commands of idem lambda. */
#ifndef IDEM_CLI_LAMBDA_LAMBDA_H
#define IDEM_CLI_LAMBDA_LAMBDA_H

#include "lambda/runtime_api.h"

/* Idem lambda package: a function with all that it needs, as a zip file. */

/* Writes @output: this program (or @program, a function that is linked with libidem,
 * or another idem) with a loader and libraries of its own, unless it is linked
 * statically, and @files beside it. @arch: one of cli_arches, for which all of it has
 * to be; NULL: that of the program. An exit status, after saying why. */
int cli_lambda_package(const char *output, const char *arch,
                       const char *program, int files_len, char **files);

/* ---- A function that has a runtime of its own, invoked here ------------- */

struct lambda_program {
    const char *path;
    const char
        *handler;      /* For _HANDLER; NULL: the environment's, or the path. */
    const char *store; /* For IDEM_STORE. */
};

/* Starts @program with a Runtime API of ours and gives it @event; prints what it
 * answers. An exit status, after saying why. */
int lambda_invoke(const struct lambda_program *program,
                  const struct lambda_event *event);

#endif
