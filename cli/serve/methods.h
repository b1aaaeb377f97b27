/* methods.h: the methods, a line as a call of one, and the lines that answer. */
#ifndef IDEM_CLI_SERVE_METHODS_H
#define IDEM_CLI_SERVE_METHODS_H

#include "serve/message.h"
#include "serve/params.h"
#include "serve/server.h"
#include "text/json.h"

/* Takes one line of @conn, and answers it: now, or when the store has. */
void serve_line(struct serve *serve, struct serve_conn *conn,
                struct idem_slice line);

/* Answers a line that is too long. */
void serve_long_line(struct serve *serve, struct serve_conn *conn);

/* A method submits the op of @call, or answers it. If it refuses p->m, or sets its
 * error, it leaves the call as it was. */
typedef void serve_method_fn(struct serve_call *call, struct serve_params *p);

serve_method_fn serve_hello, serve_ping, serve_cancel, serve_bye;
serve_method_fn serve_begin, serve_end, serve_renew;
serve_method_fn serve_statement; /* recorded, too */
serve_method_fn serve_http_begin, serve_http_end, serve_event;
serve_method_fn serve_show, serve_list, serve_stats, serve_limit;

/* Moves the time of a store in memory, and is refused for any other. */
serve_method_fn serve_advance;

/* resolve and reopen: decisions of persons, which wait for the store and keep a line in
 * the audit log. */
serve_method_fn serve_decide;

/* Finds the attempt that @p names by number, or by a token, in which case the call owns
 * it. False: p->m is refused. */
bool serve_find_attempt(struct serve_call *call, struct serve_params *p);

/* Submits @op if p->m->error.code, the result of making it, is 0. @done gives the answer,
 * unless that is an error. */
void serve_ask(struct serve_call *call, struct serve_params *p,
               struct idem_op *op, void (*done)(struct serve_call *call));

/* ---- The answer to a call, which ends it ---------------------------------
 * Nothing is sent to a client that cannot read it. An op that no client asked for has no
 * answer. */

/* Begins the answer, to which the caller adds members before serve_reply(). There is one
 * buffer for all lines, so nothing else may be sent to any client in between. */
struct cli_json *serve_answer(struct serve_call *call);

/* The answer is @result, a value of JSON on one line. */
void serve_answer_raw(struct serve_call *call, struct idem_slice result);

/* Sends the answer, or an error if it is longer than a line may be. */
void serve_reply(struct serve_call *call);
void serve_reply_error(struct serve_call *call, const struct idem_error *error);
void serve_reply_cancelled(struct serve_call *call);

/* Replies with the response that the service sends to its client, after a begin that
 * did not start the work: it was answered with @code and, if that is 0, @found. */
void serve_http_answer(struct serve_call *call, int code,
                       const struct idem_attempt *found);

/* ---- Other lines --------------------------------------------------------- */

/* Tells the client that it no longer has @a. */
void serve_notify_lost(struct serve *serve, const struct serve_attempt *a,
                       const char *reason);

/* Answers a message that was refused. */
void serve_refuse(struct serve *serve, struct serve_conn *conn,
                  const struct serve_message *m);

/* ---- Members ------------------------------------------------------------- */

/* A fence is a text: numbers in JavaScript are exact only up to 2^53. */
void serve_json_fence(struct cli_json *json, uint64_t fence);

/* "record", and with @with_result "result": as text, JSON or base64. */
void serve_json_record(struct cli_json *json, struct serve *serve,
                       const struct idem_record *record, bool with_result);

#endif
