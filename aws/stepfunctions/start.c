/* Starting an execution once, whatever becomes of the answers. */
#include "aws/stepfunctions/codec.h"
#include "aws/stepfunctions/refusal.h"

#include "base/backoff.h"
#include "base/host.h"
#include "base/utf8.h"
#include "core/error.h"

#include <limits.h>
#include <stdio.h>

enum {
    TRY_MS = 5000,
    PAUSE_MS = 200,
    PAUSE_CAP_MS = 2000,
};

struct starter {
    const struct idem_execution_options *options;
    struct idem_slice input;
    struct idem__sfn_machine machine;
    struct idem__aws_endpoint endpoint;
    struct idem__aws_provider *provider;
    struct idem__aws_client *client;
    struct idem__aws_request request;
    struct idem__buffer body;
    int64_t deadline_ms;
    bool doubt;    /* A request may have started it. */
    bool standard; /* DescribeStateMachine said so. */
};

/* ---- Opening ---------------------------------------------------------------- */

static int check(const struct idem_execution_options *options,
                 struct idem__sfn_machine *ret_machine,
                 struct idem_error *error)
{
    size_t name_len;

    if (options->size != sizeof(*options) || options->state_machine == NULL ||
        options->name == NULL || options->time_ms <= 0) {
        return idem__error(error, IDEM_EINVALID,
                           "execution: the size of the options, the state "
                           "machine, the name or the time is not set");
    }
    if (!idem__sfn_read_machine(options->state_machine, ret_machine)) {
        return idem__error(
            error, IDEM_EINVALID,
            "\"%.80s\" is not the ARN of a state machine; it looks like "
            "arn:aws:states:REGION:ACCOUNT:stateMachine:NAME",
            options->state_machine);
    }
    name_len = strlen(options->name);
    if (name_len == 0 || name_len > IDEM_EXECUTION_NAME_MAX ||
        !idem__utf8_is(idem_str(options->name))) {
        return idem__error(error, IDEM_EINVALID,
                           "the name of an execution has 1 to %d bytes",
                           IDEM_EXECUTION_NAME_MAX);
    }
    if (options->input.len > INT_MAX / 8 || !idem__utf8_is(options->input)) {
        return idem__error(error, IDEM_EINVALID,
                           "the input of an execution is JSON in UTF-8");
    }
    return 0;
}

static int open_client(struct starter *s, struct idem_error *error)
{
    struct idem__aws_endpoint_options where = {
        .service = "states",
        .service_env = "SFN",
        .region = idem_str(s->machine.region),
        .insecure = s->options->insecure,
    };
    struct idem__aws_options how = {.connections_max = 1};
    int rc = idem__aws_endpoint_find(&where, &idem__aws_env_process,
                                     &s->endpoint, error);

    if (rc == 0) {
        rc =
            idem__aws_provider_default(&idem__aws_env_process,
                                       s->endpoint.region, &s->provider, error);
    }
    how.provider = s->provider;
    how.ca_file =
        idem__aws_env_process.get(idem__aws_env_process.ctx, "AWS_CA_BUNDLE");
    return rc != 0 ? rc : idem__aws_client_open(&how, &s->client, error);
}

static void finish(struct starter *s)
{
    idem__aws_request_finish(&s->request);
    idem__buffer_free(&s->body);
    idem__aws_client_close(s->client);
    idem__aws_provider_close(s->provider);
}

/* ---- One request --------------------------------------------------------------- */

static void wait_until(struct starter *s, int64_t until_ms)
{
    while (idem__mono_ms() < until_ms) {
        idem__aws_wait(s->client, until_ms);
        idem__aws_work(s->client);
    }
}

/* Asks what s->body holds. */
static enum idem__sfn_result ask(struct starter *s, const char *target,
                                 struct idem_error *error)
{
    int64_t try_ms = idem__time_add(idem__mono_ms(), TRY_MS);
    struct idem__aws_request *r = &s->request;

    if (s->body.failed) {
        (void)idem__error_plain(error, IDEM_ENOMEM);
        return IDEM__SFN_REFUSED;
    }
    r->endpoint = &s->endpoint;
    r->target = target;
    r->body = idem__buffer_slice(&s->body);
    r->deadline_ms = try_ms < s->deadline_ms ? try_ms : s->deadline_ms;
    r->answer_max = IDEM__SFN_ANSWER_MAX;
    r->once =
        true; /* A copy would start a second execution of an EXPRESS one. */
    idem__aws_submit(s->client, r);
    idem__aws_work(s->client);
    while (idem__aws_reap(s->client) == NULL) {
        idem__aws_wait(s->client, r->deadline_ms);
        idem__aws_work(s->client);
    }
    return idem__sfn_classify(r, error);
}

static struct idem_slice answer_of(const struct starter *s)
{
    return idem_bytes(s->request.answer, s->request.answer_len);
}

/* Of a request that only reads: nothing can have happened. */
static enum idem__sfn_result ask_to_read(struct starter *s, const char *target,
                                         struct idem_error *error)
{
    enum idem__sfn_result result = ask(s, target, error);

    return result == IDEM__SFN_UNCLEAR ? IDEM__SFN_LATER : result;
}

static enum idem__sfn_result not_understood(int code, struct idem_error *error)
{
    (void)idem__error(error, code == IDEM_ENOMEM ? code : IDEM_EUNAVAILABLE,
                      "the answer has a shape that Step Functions does not "
                      "give");
    return code == IDEM_ENOMEM ? IDEM__SFN_REFUSED : IDEM__SFN_LATER;
}

/* ---- The steps ----------------------------------------------------------------- */

/* A second request is safe to a STANDARD state machine only. */
static enum idem__sfn_result make_sure(struct starter *s,
                                       struct idem_execution *ret,
                                       struct idem_error *error)
{
    enum idem__sfn_result result;
    int code;

    idem__buffer_reset(&s->body, SIZE_MAX);
    idem__sfn_describe_machine(&s->body, s->machine.arn);
    result = ask_to_read(s, IDEM__SFN_TARGET("DescribeStateMachine"), error);
    if (result != IDEM__SFN_OK) {
        return result;
    }
    code = idem__sfn_read_type(answer_of(s), &ret->express);
    if (code != 0) {
        return not_understood(code, error);
    }
    s->standard = !ret->express;
    if (ret->express) {
        ret->state = IDEM_EXECUTION_IN_DOUBT;
    }
    return IDEM__SFN_OK;
}

/* The execution that has our name: it is ours if it has our input. */
static enum idem__sfn_result find(struct starter *s, struct idem_execution *ret,
                                  struct idem_error *error)
{
    enum idem__sfn_result result;
    bool same = false;
    int code;

    idem__buffer_reset(&s->body, SIZE_MAX);
    idem__sfn_describe_execution(&s->body, s->machine.executions,
                                 s->options->name);
    result = ask_to_read(s, IDEM__SFN_TARGET("DescribeExecution"), error);
    if (result != IDEM__SFN_OK) {
        /* It is not shown at once everywhere, and not for ever. */
        return result == IDEM__SFN_NONE ? IDEM__SFN_LATER : result;
    }
    code = idem__sfn_read_execution(answer_of(s), s->input, ret, &same);
    if (code == IDEM_EDENIED) {
        (void)idem__error(error, code,
                          "there is an execution %s, and Step Functions does "
                          "not show its input",
                          s->options->name);
        return IDEM__SFN_REFUSED;
    }
    if (code != 0) {
        return not_understood(code, error);
    }
    ret->state = same ? IDEM_EXECUTION_FOUND : IDEM_EXECUTION_OTHER_INPUT;
    return IDEM__SFN_OK;
}

static enum idem__sfn_result start(struct starter *s,
                                   struct idem_execution *ret,
                                   struct idem_error *error)
{
    enum idem__sfn_result result;
    int code;

    idem__buffer_reset(&s->body, SIZE_MAX);
    idem__sfn_start(&s->body, s->options->state_machine, s->options->name,
                    s->input);
    result = ask(s, IDEM__SFN_TARGET("StartExecution"), error);
    if (result == IDEM__SFN_UNCLEAR) {
        s->doubt = true;
        return IDEM__SFN_LATER;
    }
    if (result != IDEM__SFN_OK) {
        return result == IDEM__SFN_TAKEN ? find(s, ret, error) : result;
    }
    code = idem__sfn_read_started(answer_of(s), ret);
    if (code != 0) {
        s->doubt = true;
        return not_understood(code, error);
    }
    ret->state = IDEM_EXECUTION_STARTED;
    return IDEM__SFN_OK;
}

static enum idem__sfn_result step(struct starter *s, struct idem_execution *ret,
                                  struct idem_error *error)
{
    memset(ret, 0, sizeof(*ret));
    if (s->doubt && !s->standard) {
        enum idem__sfn_result result = make_sure(s, ret, error);

        if (result != IDEM__SFN_OK || ret->express) {
            return result;
        }
    }
    return start(s, ret, error);
}

/* ---- All of it ------------------------------------------------------------------ */

/* Where a request may have started it, a refusal of a later one says nothing about
 * that. */
static int give_up(const struct starter *s, const struct idem_error *why,
                   struct idem_error *ret_error)
{
    return idem__error(ret_error, s->doubt ? IDEM_EUNKNOWN : why->code, "%s",
                       why->text);
}

static int start_until(struct starter *s, struct idem_execution *ret_execution,
                       struct idem_error *ret_error)
{
    struct idem_execution execution;
    struct idem_error error = {0};
    unsigned attempt;

    for (attempt = 0;; attempt++) {
        enum idem__sfn_result result = step(s, &execution, &error);
        int64_t now_ms = idem__mono_ms();
        int64_t pause_ms =
            idem__backoff(attempt, PAUSE_MS, PAUSE_CAP_MS,
                          (uint64_t)idem__mono_ns() * 0x9e3779b97f4a7c15u);

        if (result == IDEM__SFN_OK) {
            *ret_execution = execution;
            return 0;
        }
        if (result != IDEM__SFN_LATER || now_ms + pause_ms >= s->deadline_ms) {
            return give_up(s, &error, ret_error);
        }
        wait_until(s, now_ms + pause_ms);
    }
}

int idem_execution_check(const struct idem_execution_options *options,
                         struct idem_error *ret_error)
{
    struct idem__sfn_machine machine;

    return check(options, &machine, ret_error);
}

int idem_execution_start(const struct idem_execution_options *options,
                         struct idem_execution *ret_execution,
                         struct idem_error *ret_error)
{
    struct starter s;
    int rc;

    memset(&s, 0, sizeof(s));
    rc = check(options, &s.machine, ret_error);
    if (rc != 0) {
        return rc;
    }
    s.options = options;
    s.input = options->input.len > 0 ? options->input : idem_str("{}");
    s.doubt = options->in_doubt;
    s.deadline_ms = idem__time_add(idem__mono_ms(), options->time_ms);
    rc = open_client(&s, ret_error);
    if (rc == 0) {
        rc = start_until(&s, ret_execution, ret_error);
    }
    finish(&s);
    return rc;
}
