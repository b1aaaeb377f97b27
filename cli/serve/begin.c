/* Claims of clients: the parameters, waiting, and the same claimant. */
#include "serve/methods.h"

#include "serve/attempts.h"
#include "serve/calls.h"
#include "store/journal.h"

enum {
    POLL_FIRST_MS = 2
};

/* ---- The answer ---------------------------------------------------------- */

static void reply_verdict(struct serve_call *call)
{
    const struct idem_op *op = call->op;
    enum idem_verdict verdict = idem_op_verdict(op);
    const struct idem_record *record = idem_op_record(op);
    struct cli_json *answer = serve_answer(call);

    cli_json_text(answer, "verdict", idem_verdict_name(verdict));
    if (verdict == IDEM_BUSY) {
        cli_json_ms(answer, "lease_left_ms", op->lease_left_ms);
    }
    serve_json_record(answer, call->serve, record,
                      (verdict == IDEM_REPLAY || verdict == IDEM_FAILED) &&
                          record->status != IDEM_STATUS_IN_PROGRESS);
    serve_reply(call);
}

static void reply_started(struct serve_call *call, struct serve_attempt *a)
{
    struct serve_conn *conn = call->conn;
    struct cli_json *answer = serve_answer(call);
    char token[IDEM_TOKEN_MAX];

    (void)idem_attempt_token(a->attempt, token);
    cli_json_text(answer, "verdict", "STARTED");
    cli_json_count(answer, "attempt", a->number);
    cli_json_text(answer, "token", token);
    serve_json_fence(answer, a->attempt->fence);
    cli_json_count(answer, "attempts", a->attempt->attempts);
    cli_json_bool(answer, "takeover", a->attempt->takeover);
    cli_json_ms(answer, "lease_left_ms",
                serve_lease_left_ms(call->serve, a->lease_end_ms));
    serve_reply(call);
    a->told_at = conn->sent + conn->unsent.len - conn->unsent_from;
}

static void fail(struct serve_call *call, int code, const char *text)
{
    struct idem_error error = {.code = code};

    (void)snprintf(error.text, sizeof(error.text), "%s", text);
    serve_reply_error(call, &error);
}

/* Gives @attempt to the client, or back to the store if the client can no longer be told. */
static void start(struct serve_call *call, struct idem_attempt *attempt,
                  int64_t lease_ms, int64_t asked_ms)
{
    struct serve_attempt *a = NULL;

    if (serve_conn_hears(call->conn) && !call->cancelled) {
        a = serve_attempt_add(call, attempt, lease_ms, asked_ms);
    }
    if (a != NULL) {
        reply_started(call, a);
        return;
    }
    serve_give_back(call->serve, call->conn, attempt);
    idem_attempt_destroy(attempt);
    if (call->cancelled) {
        serve_reply_cancelled(call);
    } else {
        fail(call, IDEM_ENOMEM, idem_error_text(IDEM_ENOMEM));
    }
}

/* ---- The same claimant --------------------------------------------------- */

/* True if a client was told that it has the claim of this nonce, and may be at work. */
static bool is_had(const struct serve_call *call)
{
    const struct serve_attempt *known =
        serve_attempt_of_nonce(call->serve, call->begin.claim.nonce);

    return known != NULL && (known->conn->in >= 0 || known->endings > 0);
}

static void refuse_had(struct serve_call *call)
{
    fail(call, IDEM_ELOST,
         "an open connection owns the attempt with this nonce");
}

static void renewed(struct serve_call *call)
{
    struct idem_attempt *attempt = call->found;
    const struct idem_op *op = call->op;

    if (idem_op_code(op) != 0) {
        serve_reply_error(call, idem_op_error(op));
        return;
    }
    if (is_had(call)) { /* The client asked twice, and has the other answer. */
        refuse_had(call);
        return;
    }
    call->found = NULL;
    start(call, attempt, op->record->lease_ms, call->asked_ms);
}

/* An earlier process of the server made the claim, and its client, which did not get the
 * answer, asks again. The claim is renewed and given to it, unless its lease is over:
 * another caller may have begun the work by then. started() has refused a claim that an
 * open connection has. */
static void recognise(struct serve_call *call, struct idem_attempt *attempt)
{
    struct serve *serve = call->serve;
    struct serve_attempt *known =
        serve_attempt_of_nonce(serve, call->begin.claim.nonce);
    const struct idem_record *record = attempt->record;
    struct idem_error error = {0};
    struct idem_op *op;

    if (record->lease_end_boot_ms != IDEM_NEVER &&
        record->lease_end_boot_ms - serve->store->margin_ms <=
            serve_now_ms(serve)) {
        fail(call, IDEM_ELOST,
             "the lease, counted from the first request, is over");
        return;
    }
    if (known != NULL) {
        serve_attempt_remove(serve, known);
    }
    error.code = idem_op_renew(attempt, record->lease_ms, &op, &error);
    if (error.code != 0) {
        fail(call, error.code, error.text);
        return;
    }
    serve_call_submit(call, op, renewed);
}

static void started(struct serve_call *call)
{
    struct idem_op *op = call->op;
    int64_t lease_ms = op->u.begin.lease_ms;
    int64_t asked_ms = op->asked_boot_ms;
    bool is_new = op->changed;
    struct idem_attempt *attempt;
    int rc = idem_op_take_attempt(op, &attempt);

    if (rc != 0) {
        fail(call, rc, idem_error_text(rc));
        return;
    }
    call->found = attempt;
    if (!is_new && is_had(call)) {
        refuse_had(call);
    } else if (!is_new && !call->begin.claim.again && !call->unknown) {
        fail(call, IDEM_EINVALID,
             "nonce: an attempt has used it; set \"again\" for the same claim");
    } else if (!is_new && call->begin.claim.again) {
        recognise(call, attempt);
    } else {
        call->found = NULL;
        start(call, attempt, lease_ms, asked_ms);
    }
}

/* ---- Waiting ------------------------------------------------------------- */

static bool is_waiting(const struct serve_call *call)
{
    return call->begin.pace.since_ms != 0;
}

/* A waiter waits as in idem_begin(): for the attempt of another, and for its turn if
 * others keep a store of this host busy. Not all calls of a connection may wait,
 * because the end that they wait for may come after them on the same connection. */
static bool goes_on(const struct serve_call *call, int64_t now_ms)
{
    const struct idem_op *op = call->op;

    if (call->cancelled || now_ms >= call->begin.until_ms ||
        !serve_conn_hears(call->conn)) {
        return false;
    }
    if (!is_waiting(call) && call->conn->waiting >= SERVE_WAITING_MAX) {
        return false;
    }
    if (idem_op_code(op) != 0) {
        return idem_op_code(op) == IDEM_EUNAVAILABLE &&
               (op->u.begin.join_fence != 0 || !call->serve->store->remote);
    }
    return idem_op_verdict(op) == IDEM_BUSY && op->lease_left_ms > 0;
}

static void wait(struct serve_call *call, int64_t now_ms)
{
    struct idem_op *op = call->op;
    struct idem__pace *pace = &call->begin.pace;
    int64_t left_ms = call->begin.until_ms - now_ms;
    uint16_t random = (uint16_t)(call->begin.claim.nonce[0] << 8 |
                                 call->begin.claim.nonce[1]);
    int64_t pause_ms;

    if (!is_waiting(call)) {
        call->conn->waiting++;
        pace->since_ms = now_ms;
        pace->pause_ms = POLL_FIRST_MS;
    }
    if (idem_op_code(op) == 0 && call->begin.claim.wait_then_run) {
        op->u.begin.flags = IDEM_WAIT_THEN_RUN;
    } else if (idem_op_code(op) == 0 && op->u.begin.join_fence == 0) {
        op->u.begin.join_fence = idem_op_record(op)->fence;
    }
    op->asked_boot_ms = 0; /* The lease counts from the request that starts. */
    pause_ms = idem__pace_next(pace, now_ms, random) + 1;
    serve_call_park(call, now_ms + (pause_ms < left_ms ? pause_ms : left_ms));
}

static void answer_http(struct serve_call *call)
{
    const struct idem_op *op = call->op;
    const struct idem_attempt found = {
        .verdict = idem_op_verdict(op),
        .lease_left_ms = op->lease_left_ms,
        .record = idem_op_record(op),
    };

    serve_http_answer(call, idem_op_code(op), &found);
}

static void begun(struct serve_call *call)
{
    const struct idem_op *op = call->op;
    int64_t now_ms = serve_now_ms(call->serve);

    if (goes_on(call, now_ms)) {
        wait(call, now_ms);
    } else if (idem_op_code(op) == 0 && idem_op_verdict(op) == IDEM_STARTED) {
        started(call);
    } else if (call->cancelled) {
        serve_reply_cancelled(call);
    } else if (call->begin.is_http) {
        answer_http(call);
    } else if (idem_op_code(op) != 0) {
        serve_reply_error(call, idem_op_error(op));
    } else {
        reply_verdict(call);
    }
}

/* ---- The parameters ------------------------------------------------------ */

static void take_params(struct serve_call *call, struct serve_params *p)
{
    static const struct idem_request usual = IDEM_REQUEST_INIT;
    struct idem_request *request = &p->request;

    if (request->lease_ms == 0) {
        request->lease_ms = usual.lease_ms;
    }
    request->owner = idem_str(p->owner != NULL ? p->owner : call->conn->owner);
    request->bodies_max = SERVE_RESULT_MAX;
    call->begin.until_ms =
        p->wait_ms == 0 ? 0 : serve_now_ms(call->serve) + p->wait_ms;
    call->begin.claim = p->claim;
}

/* First records the outcomes of this key that wait in the journal. While one of them
 * still waits, the key must not be claimed, so the client gets an error after which
 * it may try again. */
static void settle_journal(struct serve *serve,
                           const struct idem_request *request,
                           struct idem_error *error)
{
    if (cli_journal_is_empty(&serve->journal) ||
        cli_journal_settle(serve->store, request->scope, request->key,
                           /* remarks= */ false, error) != CLI_JOURNAL_WAITS) {
        error->code = 0;
    } else if (idem_error_kind(error->code) != IDEM_KIND_RETRY) {
        error->code = IDEM_EUNAVAILABLE;
    }
}

void serve_begin(struct serve_call *call, struct serve_params *p)
{
    struct idem_op *op;

    take_params(call, p);
    settle_journal(call->serve, &p->request, &p->m->error);
    if (p->m->error.code == 0) {
        p->m->error.code = idem_op_begin(&p->request, &op, &p->m->error);
    }
    if (p->m->error.code == 0) {
        memcpy(op->nonce, call->begin.claim.nonce, sizeof(op->nonce));
        op->has_nonce = true;
        call->is_begin = true;
        serve_call_submit(call, op, begun);
    }
}
