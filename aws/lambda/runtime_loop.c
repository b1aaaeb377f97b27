/* The loop of the runtime (next, handle, answer), and the whole runtime for a main(). */
#include "aws/lambda/answer.h"
#include "aws/lambda/runtime_api.h"
#include "core/error.h"

#include <stdio.h>
#include <stdlib.h>

/* Answers a delivery that cannot be handled with an error. */
static void refuse(struct idem_lambda *lambda,
                   const struct idem_lambda_invocation *now, const char *why,
                   struct idem_lambda_response *response)
{
    idem__lambda_error_body(&lambda->response, "Idem.BadInvocation", why);
    idem__lambda_log(now, "ERROR", NULL, "%s", why);
    memset(response, 0, sizeof(*response));
    response->is_error = true;
    response->error_type = "Idem.BadInvocation";
    response->json = idem__buffer_slice(&lambda->response);
}

/* Reports an error for a response that Lambda did not take. The outcome stays on record,
 * so the next delivery gets it. */
static int not_sent(struct idem_lambda *lambda, struct idem__lambda_api *api,
                    const struct idem_lambda_invocation *now, long status,
                    struct idem_error *ret_error)
{
    const char *type = status == 413 ? "Function.ResponseSizeTooLarge"
                                     : "Idem.ResponseNotSent";
    char text[96];
    enum idem__lambda_post how;

    (void)snprintf(text, sizeof(text),
                   "the Runtime API refused the response: HTTP %ld", status);
    idem__lambda_log(now, "ERROR", NULL, "%s", text);
    idem__lambda_error_body(&lambda->response, type, text);
    how = idem__lambda_api_post(api, now->request_id, type,
                                idem__buffer_slice(&lambda->response), &status);
    if (how == IDEM__LAMBDA_ACCEPTED || how == IDEM__LAMBDA_REFUSED) {
        return 0;
    }
    return idem__error(
        ret_error, IDEM_EUNAVAILABLE,
        "the Runtime API took neither the response nor the error: HTTP %ld",
        status);
}

static int answer(struct idem_lambda *lambda, struct idem__lambda_api *api,
                  const struct idem_lambda_invocation *now,
                  const struct idem_lambda_response *response,
                  struct idem_error *ret_error)
{
    long status;

    switch (
        idem__lambda_api_post(api, now->request_id,
                              response->is_error ? response->error_type : NULL,
                              response->json, &status)) {
    case IDEM__LAMBDA_ACCEPTED:
        return 0;
    case IDEM__LAMBDA_BROKEN:
        return idem__error(ret_error, IDEM_EUNAVAILABLE,
                           "the Runtime API failed: HTTP %ld", status);
    case IDEM__LAMBDA_REFUSED:
    case IDEM__LAMBDA_NO_ANSWER:
        break;
    }
    return not_sent(lambda, api, now, status, ret_error);
}

static int serve_one(struct idem_lambda *lambda, struct idem__lambda_api *api,
                     struct idem_error *ret_error)
{
    struct idem_lambda_invocation now;
    struct idem_lambda_response response;
    const char *fault;
    int rc;

    rc = idem__lambda_api_next(api, &now, &fault, ret_error);
    if (rc != 0) {
        return rc;
    }
    (void)setenv("_X_AMZN_TRACE_ID", now.trace_id, /* overwrite= */ 1);
    if (fault != NULL) {
        refuse(lambda, &now, fault, &response);
    } else {
        (void)idem_lambda_handle(lambda, &now, &response);
    }
    return answer(lambda, api, &now, &response, ret_error);
}

/* Warns at the start and not only at the first request, so that a deployment shows it. */
static void warn_of_scope(const struct idem_lambda *lambda)
{
    const char *source = lambda->options->source;
    const struct idem__lambda_rule *rule =
        source == NULL ? NULL : idem__lambda_rule_named(source);

    if (lambda->options->scope == NULL &&
        (rule == NULL || rule->shape == IDEM__LAMBDA_HTTP)) {
        idem__lambda_log(NULL, "WARN", NULL, "%s%s", idem__lambda_scope_mending,
                         rule == NULL ? "; if none come, set IDEM_LAMBDA_SOURCE"
                                      : "");
    }
}

int idem_lambda_serve(struct idem_lambda *lambda, const char *api,
                      struct idem_error *ret_error)
{
    struct idem__lambda_api *client;
    int rc;

    rc = idem__lambda_api_create(api, &client, ret_error);
    if (rc != 0) {
        return rc;
    }
    warn_of_scope(lambda);
    do {
        rc = serve_one(lambda, client, ret_error);
    } while (rc == 0);
    idem__lambda_api_destroy(client);
    return rc;
}

/* ---- For a main() ------------------------------------------------------- */

/* Reports an error of the initialization to Lambda, which shows it in the console and to
 * the deployment. */
static void report(const char *address, const struct idem_error *error)
{
    struct idem__lambda_api *api;
    struct idem__buffer body = {0};
    struct idem_error none;
    char type[64];

    idem__lambda_log(NULL, "ERROR", NULL, "%s", error->text);
    if (idem__lambda_api_create(address, &api, &none) != 0) {
        return;
    }
    (void)snprintf(type, sizeof(type), "Idem.Init.%s",
                   idem_error_name(error->code));
    idem__lambda_error_body(&body, type, error->text);
    (void)idem__lambda_api_init_error(api, type, idem__buffer_slice(&body));
    idem__buffer_free(&body);
    idem__lambda_api_destroy(api);
}

int idem_lambda_main(idem_lambda_fn *run)
{
    struct idem_lambda_options options = IDEM_LAMBDA_OPTIONS_INIT;
    const char *address = getenv("AWS_LAMBDA_RUNTIME_API");
    struct idem_lambda *lambda = NULL;
    struct idem_error error = {0};

    options.run = run;
    error.code = idem_lambda_options_env(&options, &error);
    if (error.code == 0) {
        error.code = idem_lambda_open(&options, &lambda, &error);
    }
    if (error.code != 0) {
        report(address, &error);
        return EXIT_FAILURE;
    }
    error.code = idem_lambda_serve(lambda, address, &error);
    idem__lambda_log(NULL, "ERROR", NULL, "%s", error.text);
    idem_lambda_close(lambda);
    return EXIT_FAILURE;
}
