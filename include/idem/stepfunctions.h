/* idem/stepfunctions.h: executions of AWS Step Functions whose names come from keys.
 *
 * A STANDARD state machine starts one execution for each name: StartExecution with a
 * name that is in use answers with the execution that has it, or refuses. The name
 * is free again 90 days after that execution was closed. So a name that is made of
 * scope and key makes it safe to ask again, whatever became of the answer:
 *
 *     idem_begin(store, &request, &attempt, &error)
 *     idem_execution_name(request.scope, request.key, name)
 *     idem_execution_start(&options, &execution, &error)
 *     idem_complete(attempt, &result, &error)
 *
 * An EXPRESS state machine pays no attention to names: two requests start two
 * executions. There the record of idem is all that protects; idem_execution_start()
 * sends no second request to one.
 */
#ifndef IDEM_STEPFUNCTIONS_H
#define IDEM_STEPFUNCTIONS_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define IDEM_EXECUTION_NAME_MAX 80
#define IDEM_EXECUTION_ARN_MAX 511

/* The name of the execution of @scope and @key: the key itself if the scope is
 * empty, it has 1 to 80 characters of A-Z, a-z, 0-9, "-" and "_", and does not
 * begin with "idem-". Else "idem-" and the 64 hex digits of idem_id(), which is
 * SHA-256 over scope and key. So two pairs of scope and key never have one
 * name. Step Functions takes more characters than these, but its logs in
 * CloudWatch do not.
 *
 * @ret_name ends with a NUL.
 *
 * IDEM_EINVALID, IDEM_ENOMEM  As idem_id().
 */
int idem_execution_name(struct idem_slice scope, struct idem_slice key,
                        char ret_name[IDEM_EXECUTION_NAME_MAX + 1]);

struct idem_execution_options {
    size_t size; /* sizeof, set by IDEM_EXECUTION_OPTIONS_INIT. */
    const char
        *state_machine;      /* Its ARN, perhaps with a version or an alias. */
    const char *name;        /* As idem_execution_name() makes it. */
    struct idem_slice input; /* JSON. Empty: "{}". */
    bool in_doubt;   /* An earlier attempt may have started it: a takeover. */
    bool insecure;   /* http:// to another machine is wanted. */
    int64_t time_ms; /* 20,000. How long to ask, over all tries. */
};

#define IDEM_EXECUTION_OPTIONS_INIT                                            \
    {                                                                          \
        sizeof(struct idem_execution_options), NULL, NULL, {NULL, 0}, false,   \
            false, 20000                                                       \
    }

enum idem_execution_state {
    IDEM_EXECUTION_STARTED =
        1,                /* By this call or by an earlier one: Step Functions
                                   does not tell the two apart. */
    IDEM_EXECUTION_FOUND, /* Its name was taken, by one with the same input. */
    IDEM_EXECUTION_OTHER_INPUT, /* Its name was taken, by one with another input. */
    IDEM_EXECUTION_IN_DOUBT, /* It may have been started, and the state machine is
                                   EXPRESS: another request might start another. */
};

struct idem_execution {
    enum idem_execution_state state;
    bool express;     /* The state machine is EXPRESS. */
    int64_t start_ms; /* When it was started, since 1970. IN_DOUBT: 0. */
    char arn[IDEM_EXECUTION_ARN_MAX + 1]; /* IN_DOUBT: "". */
};

/* Checks @options as idem_execution_start() does, without a request: before anything is
 * claimed.
 *
 * IDEM_EINVALID  An option is missing, or the ARN, the name or the input cannot be
 *                one.
 */
int idem_execution_check(const struct idem_execution_options *options,
                         struct idem_error *ret_error);

/* Starts an execution, and asks again under the same name where Step Functions is
 * busy or no answer came. Blocks for time_ms at most, and a moment more. Where the
 * name is taken, DescribeExecution is asked for the input, which is the same if its
 * bytes are. Before a request that could start a second execution
 * DescribeStateMachine is asked whether it is EXPRESS.
 *
 * Like a DynamoDB store this reads AWS's variables and files: AWS_ENDPOINT_URL_SFN,
 * AWS_ENDPOINT_URL, credentials. The region is that of the ARN.
 *
 * @ret_execution is set where it answers 0, in each of the four states.
 *
 * IDEM_EUNKNOWN      It may have been started. Ask again under the same name, with
 *                    in_doubt.
 *
 * With all other codes this call started nothing:
 *
 * IDEM_EINVALID      As idem_execution_check().
 * IDEM_ENOTFOUND     The state machine does not exist.
 * IDEM_EDENIED       The credentials do not allow it.
 * IDEM_ECONFIG       The endpoint cannot be used, libcurl is too old, or Step
 *                    Functions does not take the name or the input.
 * IDEM_EUNAVAILABLE  No answer in time, or Step Functions is busy.
 * IDEM_ENOMEM
 */
int idem_execution_start(const struct idem_execution_options *options,
                         struct idem_execution *ret_execution,
                         struct idem_error *ret_error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
