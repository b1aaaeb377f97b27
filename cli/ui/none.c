/* Takes the place of the server in a build without libmicrohttpd. */
#include "text/error.h"
#include "text/exit_status.h"
#include "ui/ui.h"

int ui_server_start(const struct ui_options *options,
                    struct ui_server **ret_server)
{
    (void)options;
    (void)ret_server;
    cli_say("this idem was built without libmicrohttpd and has no page");
    return CLI_CONFIG;
}

void ui_server_stop(struct ui_server *server)
{
    (void)server;
}
