/* invoke.h: a function that has a runtime of its own, invoked here. */
#ifndef IDEM_CLI_LAMBDA_INVOKE_H
#define IDEM_CLI_LAMBDA_INVOKE_H

#include "lambda/runtime_api.h"

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
