/* reply.h: lines for a client. */
#ifndef IDEM_CLI_SERVE_REPLY_H
#define IDEM_CLI_SERVE_REPLY_H

#include "serve/message.h"
#include "serve/server.h"
#include "text/json.h"

/* ---- The answer to a call, which ends it ---------------------------------
 * Nothing is sent where nobody hears it, or the op was our own. */

/* Finishes @result. One that is longer than a line may be says so instead. */
void serve_reply(struct serve_call *call, struct cli_json *result);
void serve_reply_error(struct serve_call *call, const struct idem_error *error);
void serve_reply_cancelled(struct serve_call *call);

/* ---- Other lines --------------------------------------------------------- */

/* A notification. Finishes @params. */
void serve_notify(struct serve_conn *conn, const char *method,
                  struct cli_json *params);

/* The answer to a message that was refused. */
void serve_refuse(struct serve_conn *conn, const struct serve_message *m);

/* ---- Members ------------------------------------------------------------- */

/* A fence is a text: numbers of JavaScript end at 2^53. */
void serve_json_fence(struct cli_json *json, uint64_t fence);

/* "record", and with @with_result "result": as text, JSON or base64. */
void serve_json_record(struct cli_json *json, struct serve *serve,
                       const struct idem_record *record, bool with_result);

#endif
