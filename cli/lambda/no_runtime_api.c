/* Where libmicrohttpd was not there when this was built. */
#include "lambda/runtime_api.h"
#include "text/error.h"
#include "text/exit_status.h"

int lambda_api_start(const struct lambda_event *event,
                     struct lambda_api **ret_api, unsigned *ret_port)
{
    (void)event;
    (void)ret_api;
    (void)ret_port;
    cli_say("this idem was built without libmicrohttpd: it cannot invoke a "
            "--program");
    return CLI_CONFIG;
}

int lambda_api_fd(const struct lambda_api *api)
{
    (void)api;
    return -1;
}

void lambda_api_look(struct lambda_api *api, struct lambda_answer *ret_answer)
{
    (void)api;
    (void)ret_answer;
}

void lambda_api_stop(struct lambda_api *api)
{
    (void)api;
}
