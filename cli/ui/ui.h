/* ui.h: the page of a store, for one person on this host. */
#ifndef IDEM_CLI_UI_UI_H
#define IDEM_CLI_UI_UI_H

#include <idem.h>

enum {
    UI_SECRET_LEN = 32 /* Hex digits of a secret that is made here. */
};

struct cli_jobs;
struct net_socket;

struct ui_options {
    struct net_socket *socket; /* At an address of this host alone. */
    const char *token;         /* A person who has it may do
                                       everything. */
    const char *session;       /* In the path of all that the token
                                       opens: see respond.c. */
    const char *who;           /* The person who decides. */
    struct idem_store *store;
    const struct cli_jobs *jobs; /* The metrics have their last success. */
};

struct ui_server;

/* Listens, and answers on a thread of its own. @options must stay. 0, or an exit status
 * after an error message. */
int ui_server_start(const struct ui_options *options,
                    struct ui_server **ret_server);
void ui_server_stop(struct ui_server *server);

#endif
