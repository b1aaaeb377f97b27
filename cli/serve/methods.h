/* methods.h: the methods, and a line as a call of one. */
#ifndef IDEM_CLI_SERVE_METHODS_H
#define IDEM_CLI_SERVE_METHODS_H

#include "serve/message.h"
#include "serve/params.h"
#include "serve/server.h"

/* Takes one line of @conn, and answers it: now, or when the store has. */
void serve_line(struct serve *serve, struct serve_conn *conn,
                struct idem_slice line);

/* Answers a line that is too long. */
void serve_long_line(struct serve_conn *conn);

/* A method submits the op of @call, or answers it. Where it has refused @m, or set
 * m->error, the call is as it was. */
typedef void serve_method_fn(struct serve_call *call, struct serve_message *m,
                             struct serve_params *params);

serve_method_fn serve_hello, serve_ping, serve_cancel, serve_bye;
serve_method_fn serve_begin, serve_end, serve_renew;
serve_method_fn serve_show, serve_list, serve_stats, serve_limit;

/* Decisions of persons, which wait for the store and keep a line in the audit log. */
serve_method_fn serve_resolve, serve_reopen;

#endif
