/* All of the runtime, for a main(). */
#include "aws/lambda/log.h"
#include "aws/lambda/serve.h"

#include <stdio.h>
#include <stdlib.h>

/* Lambda shows it to whoever deployed the function. */
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
