/* How clients end and renew their attempts. */
#include "serve/methods.h"

#include "record/record.h"
#include "serve/attempts.h"
#include "serve/calls.h"

#include <idem/statement.h>

/* ---- Which attempt ------------------------------------------------------- */

bool serve_find_attempt(struct serve_call *call, struct serve_params *p)
{
    struct serve *serve = call->serve;

    if ((p->attempt == 0) == (p->token == NULL)) {
        serve_param_refuse(p->m, "attempt", "the number of one, or the token");
    } else if (p->attempt == 0) {
        p->m->error.code = idem_attempt_from_token(serve->store, p->token,
                                                   &call->found, &p->m->error);
        p->named = call->found;
    } else {
        call->attempt = (uint64_t)p->attempt;
        p->known = serve_attempt_find(serve, call->conn, call->attempt);
        if (p->known == NULL) {
            serve_param_refuse(
                p->m, "attempt",
                "this connection has none with the number %lld; it "
                "ended, or use the token",
                (long long)p->attempt);
        } else {
            p->named = p->known->attempt;
        }
    }
    return p->named != NULL;
}

/* A token names its attempt, even one that another connection began. */
static struct serve_attempt *ended_one(struct serve_call *call)
{
    return call->attempt != 0
               ? serve_attempt_find(call->serve, call->conn, call->attempt)
               : serve_attempt_of_nonce(call->serve, call->op->nonce);
}

/* ---- Ends ---------------------------------------------------------------- */

static void reply_ended(struct serve_call *call)
{
    const struct idem_record *record = idem_op_record(call->op);
    struct cli_json *answer = serve_answer(call);

    cli_json_text(answer, "status",
                  idem_status_name(idem_record_status(record)));
    if (call->op->u.end.result.not_kept) {
        cli_json_bool(answer, "not_kept", true);
    }
    serve_reply(call);
}

/* The last message of a client that died is repeated until its lease is over: no other
 * process will repeat it. */
static bool is_said_again(const struct serve_call *call,
                          const struct serve_attempt *a)
{
    return a != NULL && call->conn->dead &&
           idem_error_kind(idem_op_code(call->op)) == IDEM_KIND_RETRY &&
           serve_now_ms(call->serve) < a->lease_end_ms;
}

static void ended(struct serve_call *call)
{
    int code = idem_op_code(call->op);
    struct serve_attempt *a = ended_one(call);

    if (is_said_again(call, a)) {
        serve_call_retry(call);
        return;
    }
    if (a != NULL && call->attempt != 0) {
        a->endings--;
    }
    if (a != NULL && (code == 0 || code == IDEM_ELOST) && a->endings == 0) {
        serve_attempt_remove(call->serve, a);
    }
    if (code == 0) {
        serve_calls_wake(call->serve, idem_op_id(call->op));
        reply_ended(call);
    } else {
        serve_reply_error(call, idem_op_error(call->op));
    }
}

void serve_end(struct serve_call *call, struct serve_params *p)
{
    struct idem_op *op;

    p->m->error.code = idem_op_end(p->named, &p->outcome, &op, &p->m->error);
    if (p->m->error.code != 0) {
        return;
    }
    if (p->known != NULL) {
        p->known->endings++;
    }
    serve_call_submit(call, op, ended);
}

/* ---- An end in a transaction of the client's ------------------------------ */

/* "statement" writes nothing, and the attempt stays until "recorded", because the
 * client's transaction may be rolled back. The table of methods gives only "recorded" a
 * status. Only for an attempt that was begun here can the statement be made without
 * asking the database. */
void serve_statement(struct serve_call *call, struct serve_params *p)
{
    struct cli_json *answer = serve_answer(call);

    if (p->outcome.status == IDEM_STATUS_COMPLETED) {
        idem_attempt_recorded(p->named);
        serve_calls_wake(call->serve, p->named->record->id);
        if (p->known != NULL) {
            serve_attempt_remove(call->serve, p->known);
        }
    } else {
        p->m->error.code =
            cli_statement_json(answer, call->serve->store, p->named,
                               &p->outcome.result, &p->m->error);
    }
    if (p->m->error.code == 0) {
        serve_reply(call);
    }
}

/* ---- Renewals ------------------------------------------------------------ */

static void renewed(struct serve_call *call)
{
    struct serve *serve = call->serve;
    const struct idem_op *op = call->op;
    struct serve_attempt *a = ended_one(call);
    int64_t lease_ms = op->u.renew.lease_ms;
    int64_t end_ms;

    if (lease_ms == 0) {
        lease_ms = op->record->lease_ms;
    }
    end_ms = serve_lease_end_ms(serve, lease_ms, call->asked_ms);
    if (a != NULL) {
        serve_attempt_renewed(serve, a, lease_ms, call->asked_ms);
        end_ms = a->lease_end_ms;
    }
    cli_json_ms(serve_answer(call), "lease_left_ms",
                serve_lease_left_ms(serve, end_ms));
    serve_reply(call);
}

void serve_renew(struct serve_call *call, struct serve_params *p)
{
    int64_t lease_ms = p->request.lease_ms;
    struct idem_op *op = NULL;

    if (lease_ms == 0 && p->known != NULL) {
        lease_ms = p->known->lease_ms;
    }
    p->m->error.code = idem_op_renew(p->named, lease_ms, &op, &p->m->error);
    serve_ask(call, p, op, renewed);
}
