/* Opens and closes a function, and handles one event. */
#include "aws/lambda/lambda.h"

#include "aws/lambda/answer.h"
#include "aws/lambda/ends.h"
#include "aws/lambda/batch.h"
#include "aws/lambda/unit.h"
#include "base/heap.h"
#include "core/error.h"

#include <idem/http.h>

/* ---- Life -------------------------------------------------------------- */

/* Checks the methods that need a key. As at the gateway, a request that changes nothing
 * has none. */
static int check_methods(const char *list, struct idem_error *error)
{
    while (list != NULL && *list != '\0') {
        struct idem_slice method = {list, strcspn(list, ",")};

        if (!idem__lambda_is_in_list("POST,PATCH,PUT,DELETE", method)) {
            return idem__error(
                error, IDEM_EINVALID,
                "IDEM_LAMBDA_METHODS: \"%.*s\": expected some of "
                "POST,PATCH,PUT,DELETE",
                (int)method.len, list);
        }
        list += method.len;
        list += *list == ',' ? 1 : 0;
    }
    return 0;
}

int idem__lambda_check(const struct idem_lambda_options *o,
                       struct idem_error *error)
{
    struct idem_error why;

    if (o->size != sizeof(*o)) {
        return idem__error(error, IDEM_EINVALID,
                           "the size of the options is not set");
    }
    if (o->store == NULL || o->store[0] == '\0') {
        return idem__error(error, IDEM_EINVALID,
                           "IDEM_STORE is not set: dynamodb://TABLE");
    }
    if (o->function == NULL || o->function[0] == '\0' ||
        strlen(o->function) > 128) {
        return idem__error(error, IDEM_EINVALID,
                           "the function has no name, or one of more than 128 "
                           "bytes: AWS_LAMBDA_FUNCTION_NAME or IDEM_SCOPE");
    }
    if (o->source != NULL && idem__lambda_rule_named(o->source) == NULL) {
        return idem__error(
            error, IDEM_EINVALID,
            "IDEM_LAMBDA_SOURCE is not a known source; see: idem lambda "
            "sources");
    }
    if (o->start_min_ms < 0 || o->store_timeout_ms < 1 || o->wait_ms < 0 ||
        o->retention_ms < 1 || o->retry_after_ms < 0) {
        return idem__error(error, IDEM_EINVALID, "a time is out of range");
    }
    if (idem_http_headers_check(o->replay_headers, &why) != 0) {
        return idem__error(error, IDEM_EINVALID,
                           "IDEM_LAMBDA_REPLAY_HEADERS: %s", why.text);
    }
    return check_methods(o->methods, error);
}

static int read_outcomes(struct idem_lambda *lambda, struct idem_error *error)
{
    struct idem_error why = {0};
    int rc = idem_outcome_table_read(&lambda->outcomes, IDEM_ENDINGS_LAMBDA,
                                     lambda->options->outcome, &why);

    return rc == 0
               ? 0
               : idem__error(error, rc, "IDEM_LAMBDA_OUTCOME: %s", why.text);
}

static int open_store(struct idem_lambda *lambda, struct idem_error *error)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;

    options.timeout_ms = lambda->options->store_timeout_ms;
    options.queue_max = IDEM__LAMBDA_RECORDS_MAX;
    if (lambda->options->failures_max != 0 ||
        lambda->options->retry_after_ms != 0) {
        options.flags |= IDEM_OPEN_BUDGETS;
    }
    idem__lambda_metrics_observe(lambda, &options);
    return idem_open(lambda->options->store, &options, &lambda->store, error);
}

int idem_lambda_open(const struct idem_lambda_options *options,
                     struct idem_lambda **ret_lambda,
                     struct idem_error *ret_error)
{
    static int (*const steps[])(struct idem_lambda *, struct idem_error *) = {
        read_outcomes, idem__lambda_handler_init, idem__lambda_selects_init,
        idem__lambda_metrics_init, open_store};
    struct idem_lambda *lambda;
    int rc = idem__lambda_check(options, ret_error);
    size_t i;

    if (rc != 0) {
        return rc;
    }
    lambda = idem__zalloc(sizeof(*lambda));
    if (lambda == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    lambda->options = options;
    for (i = 0; rc == 0 && i < sizeof(steps) / sizeof(steps[0]); i++) {
        rc = steps[i](lambda, ret_error);
    }
    if (rc != 0) {
        idem_lambda_close(lambda);
        return rc;
    }
    *ret_lambda = lambda;
    return 0;
}

void idem_lambda_close(struct idem_lambda *lambda)
{
    if (lambda == NULL) {
        return;
    }
    idem__lambda_handler_finish(lambda);
    idem__lambda_selects_finish(lambda);
    idem__lambda_ends_finish(lambda);
    idem__lambda_hide_finish(lambda);
    idem_close(lambda->store);
    idem__lambda_metrics_finish(lambda);
    idem__tree_free(&lambda->tree);
    idem__buffer_free(&lambda->event);
    idem__buffer_free(&lambda->input);
    idem__buffer_free(&lambda->response);
    idem__free(lambda);
}

void idem__lambda_allow(const struct idem_lambda *lambda, int64_t ms)
{
    int64_t most_ms = lambda->options->store_timeout_ms;

    ms = ms < most_ms ? ms : most_ms;
    (void)idem_store_set_timeout(lambda->store, ms < 1 ? 1 : ms, NULL);
}

/* ---- One event --------------------------------------------------------- */

static const struct idem__lambda_rule *rule_of(const struct idem_lambda *lambda)
{
    const struct idem_lambda_options *options = lambda->options;
    const struct idem__lambda_rule *rule;

    if (options->source != NULL) {
        return idem__lambda_rule_named(options->source);
    }
    rule = idem__lambda_rule_of(&lambda->tree);
    return rule == NULL && options->key != NULL ? idem__lambda_direct : rule;
}

/* Returns NULL, or why the event must not be handled by @rule. A batch without records
 * does not show its source, so a named source accepts it. If the user names no source, do
 * not guess one where a wrong guess would change the meaning of the answer, or let work
 * run twice. */
static const char *why_not(const struct idem_lambda *lambda,
                           const struct idem__lambda_rule *rule)
{
    const struct idem__tree *event = &lambda->tree;

    if (rule == NULL) {
        return "its source is unknown: set IDEM_LAMBDA_KEY";
    }
    if (lambda->options->source != NULL) {
        return rule == idem__lambda_direct ||
                       idem__lambda_is_from(rule, event) ||
                       (rule->shape >= IDEM__LAMBDA_QUEUE &&
                        idem__lambda_records(rule, event) !=
                            IDEM__LAMBDA_NOWHERE &&
                        idem__lambda_first(rule, event) == 0)
                   ? NULL
                   : "it does not come from the source in IDEM_LAMBDA_SOURCE";
    }
    if (rule->records != NULL &&
        idem__tree_at(event, 0)->kind == IDEM__TREE_ARRAY) {
        return "it is an array of records, as a pipe hands them on: set "
               "IDEM_LAMBDA_SOURCE to their source if the function is the "
               "pipe's target, to direct if it is an enrichment, whose response "
               "is data";
    }
    if (rule == idem__lambda_direct && idem__lambda_has_key_header(event)) {
        return "it has the header Idempotency-Key, but comes from an unknown "
               "source of HTTP: set IDEM_LAMBDA_SOURCE to its source, or "
               "to direct, and IDEM_LAMBDA_KEY";
    }
    return NULL;
}

const struct idem__lambda_rule *idem__lambda_pick(
    const struct idem_lambda *lambda, const char **ret_why)
{
    const struct idem__lambda_rule *rule = rule_of(lambda);

    *ret_why = why_not(lambda, rule);
    return rule;
}

static void invalid(struct idem_lambda *lambda, const char *why)
{
    idem__lambda_log(lambda->now, "ERROR", NULL, "the event is not valid: %s",
                     why);
    idem__lambda_answer_error(lambda, idem__lambda_invalid.type, why);
}

static void dispatch(struct idem_lambda *lambda)
{
    const struct idem_lambda_options *options = lambda->options;
    const char *why;
    const struct idem__lambda_rule *rule = idem__lambda_pick(lambda, &why);

    lambda->many =
        idem__lambda_find(&lambda->tree, 0, "headers") == 0 &&
        idem__lambda_find(&lambda->tree, 0, "multiValueHeaders") != 0;
    if (why != NULL) {
        invalid(lambda, why);
    } else if (idem__lambda_left_ms(lambda->now) <
               options->start_min_ms + IDEM__LAMBDA_STOP_MS) {
        idem__lambda_log(lambda->now, "WARN", NULL,
                         "nothing was started: there is too little time left");
        idem__lambda_answer_refusal(lambda, rule, &idem__lambda_too_late,
                                    "nothing was started");
    } else if (rule->shape == IDEM__LAMBDA_EVENT ||
               rule->shape == IDEM__LAMBDA_HTTP) {
        idem__lambda_single(lambda, rule);
    } else {
        idem__lambda_batch(lambda, rule);
    }
}

int idem_lambda_handle(struct idem_lambda *lambda,
                       const struct idem_lambda_invocation *invocation,
                       struct idem_lambda_response *ret_response)
{
    struct idem_error error = {0};

    if (invocation->size != sizeof(*invocation) ||
        invocation->request_id == NULL) {
        return IDEM_EINVALID;
    }
    lambda->now = invocation;
    lambda->retry_after_s = 1;
    lambda->ran = 0;
    lambda->error_type[0] = '\0';
    if (idem__tree_read(&lambda->tree, invocation->event, &error) != 0) {
        invalid(lambda, error.text);
    } else {
        idem__lambda_ends_retell(lambda);
        dispatch(lambda);
    }
    if (lambda->response.failed) {
        idem__lambda_answer_error(lambda, "Idem.NoMemory", "out of memory");
    }
    idem__lambda_metrics_log(lambda);
    ret_response->is_error = lambda->error_type[0] != '\0';
    ret_response->error_type = lambda->error_type;
    ret_response->json = idem__buffer_slice(&lambda->response);
    ret_response->ran = lambda->ran;
    lambda->now = NULL;
    return 0;
}
