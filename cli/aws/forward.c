/* The functions of libidem-aws that the commands call.
 *
 * The program is not linked with that library, which brings libcurl and two dozen
 * more: `idem run` on a local store would load them all at each start. Each function
 * here has the name and the parameters of one of the library's, loads the library when
 * the first of them is called, and calls the function of that name there. The header
 * checks that both are declared alike.
 */
#include "text/error.h"
#include "text/exit_status.h"

#include <idem/consume.h>
#include <idem/dynamodb.h>
#include <idem/lambda.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define LIBRARY "libidem-aws.so.0"

/* The function @name, or NULL. RTLD_GLOBAL, because a handler of `idem lambda` calls the
 * functions of the library too. */
static void *look_up(const char *name)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);

    return library == NULL ? NULL : dlsym(library, name);
}

/* Sets *@ret_function, a pointer to the function @name, or ends the program. */
static void find(const char *name, void *ret_function)
{
    void *function = look_up(name);

    if (function == NULL) {
        const char *why = dlerror();

        cli_say("this command needs " LIBRARY ", which cannot be loaded (%s): "
                "apt install libidem-aws0",
                why == NULL ? name : why);
        exit(CLI_CONFIG);
    }
    memcpy(ret_function, &function, sizeof(function));
}

/* The function @name, looked up once. Two threads may both look, and find the same. */
#define FIND(name)                                                             \
    static __typeof__(&(name)) kept;                                           \
    __typeof__(&(name)) function = __atomic_load_n(&kept, __ATOMIC_RELAXED);   \
                                                                               \
    if (function == NULL) {                                                    \
        find(#name, &function);                                                \
        __atomic_store_n(&kept, function, __ATOMIC_RELAXED);                   \
    }

#define FORWARD(type, name, parameters, arguments)                             \
    type name parameters                                                       \
    {                                                                          \
        FIND(name)                                                             \
        return function arguments;                                             \
    }

#define FORWARD_VOID(name, parameters, arguments)                              \
    void name parameters                                                       \
    {                                                                          \
        FIND(name)                                                             \
        function arguments;                                                    \
    }

/* ---- <idem/consume.h> -------------------------------------------------- */

FORWARD(int, idem_consumer_open,
        (const struct idem_consumer_options *options,
         struct idem_consumer **ret_consumer, struct idem_error *ret_error),
        (options, ret_consumer, ret_error))
FORWARD(const struct idem_consumer_queue *, idem_consumer_info,
        (const struct idem_consumer *consumer), (consumer))
FORWARD(int, idem_consumer_work,
        (struct idem_consumer * consumer, struct idem_error *ret_error),
        (consumer, ret_error))
FORWARD(struct idem_message *, idem_consumer_next,
        (struct idem_consumer * consumer), (consumer))
FORWARD_VOID(idem_consumer_delete,
             (struct idem_consumer * consumer, struct idem_message *message),
             (consumer, message))
FORWARD_VOID(idem_consumer_leave,
             (struct idem_consumer * consumer, struct idem_message *message,
              int64_t ms),
             (consumer, message, ms))
FORWARD_VOID(idem_consumer_keep,
             (struct idem_consumer * consumer, struct idem_message *message,
              int64_t ms),
             (consumer, message, ms))
FORWARD_VOID(idem_consumer_pause,
             (struct idem_consumer * consumer, bool paused), (consumer, paused))
FORWARD_VOID(idem_consumer_stop, (struct idem_consumer * consumer), (consumer))
FORWARD(const char *, idem_consumer_trouble,
        (const struct idem_consumer *consumer), (consumer))
FORWARD(size_t, idem_consumer_busy, (const struct idem_consumer *consumer),
        (consumer))
FORWARD(bool, idem_consumer_is_empty, (const struct idem_consumer *consumer),
        (consumer))
FORWARD_VOID(idem_consumer_count,
             (const struct idem_consumer *consumer,
              struct idem_consumer_counters *ret_counters),
             (consumer, ret_counters))
FORWARD(int, idem_consumer_fd, (const struct idem_consumer *consumer),
        (consumer))
FORWARD(int64_t, idem_consumer_due_ms, (const struct idem_consumer *consumer),
        (consumer))
FORWARD_VOID(idem_consumer_close, (struct idem_consumer * consumer), (consumer))

/* ---- <idem/dynamodb.h> ------------------------------------------------- */

FORWARD(int, idem_dynamodb_purge,
        (struct idem_store * store,
         const struct idem_dynamodb_purge_options *options,
         struct idem_dynamodb_purged *ret_purged, struct idem_error *ret_error),
        (store, options, ret_purged, ret_error))

/* ---- <idem/lambda.h> --------------------------------------------------- */

FORWARD(int, idem_lambda_options_env,
        (struct idem_lambda_options * options, struct idem_error *ret_error),
        (options, ret_error))
FORWARD(int, idem_lambda_open,
        (const struct idem_lambda_options *options,
         struct idem_lambda **ret_lambda, struct idem_error *ret_error),
        (options, ret_lambda, ret_error))
FORWARD_VOID(idem_lambda_close, (struct idem_lambda * lambda), (lambda))
FORWARD(int, idem_lambda_handle,
        (struct idem_lambda * lambda,
         const struct idem_lambda_invocation *invocation,
         struct idem_lambda_response *ret_response),
        (lambda, invocation, ret_response))
FORWARD(int, idem_lambda_main, (idem_lambda_fn * run), (run))
FORWARD(const struct idem_lambda_source *, idem_lambda_source_at,
        (size_t index), (index))
FORWARD(const char *, idem_lambda_strength_name,
        (enum idem_lambda_strength strength), (strength))

/* `idem serve` calls it for one client. Without the library only that call fails, and the
 * process goes on: it holds the attempts of other clients. */
int idem_lambda_units(const struct idem_lambda_options *options,
                      const struct idem_lambda_invocation *invocation,
                      struct idem_slice outcomes, idem_lambda_take_fn *take,
                      void *ctx, struct idem_error *ret_error)
{
    void *found = look_up("idem_lambda_units");
    __typeof__(&idem_lambda_units) function;

    if (found == NULL) {
        ret_error->code = IDEM_ECONFIG;
        (void)snprintf(ret_error->text, sizeof(ret_error->text),
                       "events of AWS Lambda need " LIBRARY
                       ", which cannot be loaded: apt install libidem-aws0");
        return IDEM_ECONFIG;
    }
    memcpy(&function, &found, sizeof(function));
    return function(options, invocation, outcomes, take, ctx, ret_error);
}
