/* environment.h: what the command is told about its attempt. */
#ifndef IDEM_CLI_RUN_ENVIRONMENT_H
#define IDEM_CLI_RUN_ENVIRONMENT_H

#include "run/child.h"

#define ENVIRONMENT_OWN_MAX 7

struct environment {
    char *own[ENVIRONMENT_OWN_MAX]; /* The variables that we set. */
    size_t own_len;
    char **list; /* Those, then what we were given; NULL at its end. */
};

/* Our environment with IDEM_KEY and IDEM_SCOPE of @request, IDEM_FENCE,
 * IDEM_ATTEMPTS, IDEM_TAKEOVER and IDEM_TOKEN of @task, and IDEM_STORE where
 * @store_url is not NULL, instead of any that were there. Where @task is NULL there
 * is none of those that are about an attempt. 0, or -1: out of memory. */
int environment_init(struct environment *environment,
                     const struct idem_request *request,
                     const struct child_task *task, const char *store_url);
void environment_finish(struct environment *environment);

#endif
