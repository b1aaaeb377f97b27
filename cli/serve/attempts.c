/* The attempts of clients: their leases, and what becomes of them when the client has
 * gone. */
#include "serve/attempts.h"

#include "base/host.h"
#include "base/list.h"
#include "core/slice.h"
#include "serve/calls.h"
#include "serve/methods.h"

#include <stdlib.h>

enum {
    PAUSE_MIN_MS = 200 /* Between two renewals of an attempt. */
};

/* ---- The table ----------------------------------------------------------- */

/* The next renewal comes after a third of the lease that is left, so that a failed one
 * can be repeated in time. */
static void schedule(struct serve *serve, struct serve_attempt *a)
{
    int64_t now_ms = serve_now_ms(serve);
    int64_t pause_ms = (a->lease_end_ms - now_ms) / 3;
    int64_t due_ms =
        now_ms + (pause_ms < PAUSE_MIN_MS ? PAUSE_MIN_MS : pause_ms);

    a->due_ms = a->lease_end_ms == IDEM_NEVER || a->lost ? IDEM_NEVER
                : due_ms < a->lease_end_ms               ? due_ms
                                                         : a->lease_end_ms;
    serve_due(serve, a->due_ms);
}

int64_t serve_lease_end_ms(const struct serve *serve, int64_t lease_ms,
                           int64_t asked_ms)
{
    return lease_ms == IDEM_NEVER
               ? IDEM_NEVER
               : idem__time_add(asked_ms, lease_ms) - serve->store->margin_ms;
}

int64_t serve_lease_left_ms(const struct serve *serve, int64_t end_ms)
{
    int64_t now_ms = serve_now_ms(serve);

    if (end_ms == IDEM_NEVER) {
        return IDEM_NEVER;
    }
    return end_ms > now_ms ? end_ms - now_ms : 0;
}

void serve_attempt_renewed(struct serve *serve, struct serve_attempt *a,
                           int64_t lease_ms, int64_t asked_ms)
{
    int64_t end_ms = serve_lease_end_ms(serve, lease_ms, asked_ms);

    if (end_ms > a->lease_end_ms) {
        a->lease_end_ms = end_ms;
    }
    a->lost = a->lease_end_ms <= serve_now_ms(serve);
    schedule(serve, a);
}

struct serve_attempt *serve_attempt_add(struct serve_call *call,
                                        struct idem_attempt *attempt,
                                        int64_t lease_ms, int64_t asked_ms)
{
    struct serve *serve = call->serve;
    struct serve_attempt *a = calloc(1, sizeof(*a));
    struct serve_attempt **chain;

    if (a == NULL) {
        return NULL;
    }
    a->number = ++serve->number;
    a->conn = call->conn;
    a->attempt = attempt;
    memcpy(a->id, call->id, call->id_len);
    a->id_len = call->id_len;
    memcpy(a->nonce, call->begin.claim.nonce, sizeof(a->nonce));
    a->now = call->begin.claim.on_death != 0;
    a->lease_ms = lease_ms;
    a->renew_until_ms =
        idem__time_add(serve_now_ms(serve), call->begin.claim.max_time_ms);
    a->told_at = UINT64_MAX;
    serve_attempt_renewed(serve, a, lease_ms, asked_ms);
    a->lost = false; /* A lease that is over is reported after the answer. */

    chain = &serve->numbered[a->number % SERVE_BUCKETS];
    a->next_numbered = *chain;
    *chain = a;
    IDEM__LIST_PREPEND(&serve->attempts, a);
    a->conn->attempts++;
    return a;
}

void serve_attempt_remove(struct serve *serve, struct serve_attempt *a)
{
    struct serve_attempt **at = &serve->numbered[a->number % SERVE_BUCKETS];

    while (*at != a) {
        at = &(*at)->next_numbered;
    }
    *at = a->next_numbered;
    IDEM__LIST_REMOVE(&serve->attempts, a);
    a->conn->attempts--;
    idem_attempt_destroy(a->attempt);
    free(a);
}

struct serve_attempt *serve_attempt_find(struct serve *serve,
                                         const struct serve_conn *conn,
                                         uint64_t number)
{
    struct serve_attempt *a = serve->numbered[number % SERVE_BUCKETS];

    while (a != NULL && (a->number != number || a->conn != conn)) {
        a = a->next_numbered;
    }
    return a;
}

struct serve_attempt *serve_attempt_of_nonce(struct serve *serve,
                                             const uint8_t nonce[16])
{
    struct serve_attempt *a = serve->attempts.first;

    while (a != NULL && memcmp(a->nonce, nonce, sizeof(a->nonce)) != 0) {
        a = a->next;
    }
    return a;
}

struct serve_attempt *serve_attempt_of_id(struct serve *serve,
                                          const struct serve_conn *conn,
                                          struct idem_slice id)
{
    struct serve_attempt *a = serve->attempts.first;

    while (a != NULL &&
           (a->conn != conn ||
            !idem__slice_equal(idem_bytes(a->id, a->id_len), id))) {
        a = a->next;
    }
    return a;
}

/* ---- Leases -------------------------------------------------------------- */

static void lose(struct serve *serve, struct serve_attempt *a,
                 const char *reason)
{
    a->lost = true;
    a->due_ms = IDEM_NEVER;
    serve_notify_lost(serve, a, reason);
}

static void renewed(struct serve_call *call)
{
    struct serve *serve = call->serve;
    struct serve_attempt *a =
        serve_attempt_find(serve, call->conn, call->attempt);

    if (a != NULL) {
        a->renewing = false;
        if (idem_op_code(call->op) == 0) {
            serve_attempt_renewed(serve, a, a->lease_ms, call->asked_ms);
        } else if (idem_op_code(call->op) == IDEM_ELOST && a->endings == 0) {
            lose(serve, a, "taken");
        } else {
            schedule(serve, a);
        }
    }
    serve_call_end(call);
}

/* A client that has not been heard for half a lease may hang, and one that has closed its
 * end may be dead, so their attempts are not renewed. */
static bool is_renewed(const struct serve_attempt *a, int64_t now_ms)
{
    return !a->renewing && a->endings == 0 && a->conn->in >= 0 &&
           serve_conn_hears(a->conn) && now_ms < a->renew_until_ms &&
           now_ms - a->conn->heard_ms <= a->lease_ms / 2;
}

/* Submits an op that no client asked for. @code is the result of making @op. NULL: that
 * failed, or memory ran out. */
static struct serve_call *submit(struct serve *serve, struct serve_conn *conn,
                                 int code, struct idem_op *op,
                                 void (*answered)(struct serve_call *call))
{
    struct serve_call *call = NULL;

    if (code == 0) {
        call = serve_call_create(serve, conn, idem_bytes(NULL, 0));
        if (call == NULL) {
            idem_op_destroy(op);
        } else {
            serve_call_submit(call, op, answered);
        }
    }
    return call;
}

static void renew(struct serve *serve, struct serve_attempt *a)
{
    struct idem_op *op = NULL;
    int rc = idem_op_renew(a->attempt, a->lease_ms, &op, NULL);
    struct serve_call *call = submit(serve, a->conn, rc, op, renewed);

    if (call != NULL) {
        call->attempt = a->number;
        call->settle_ms = 0; /* The next renewal comes in any case. */
        a->renewing = true;
    }
}

void serve_attempts_due(struct serve *serve, int64_t now_ms)
{
    struct serve_attempt *next;
    struct serve_attempt *a;

    for (a = serve->attempts.first; a != NULL; a = next) {
        next = a->next;
        if (a->due_ms <= now_ms && a->lease_end_ms <= now_ms) {
            lose(serve, a, "lease_over");
            if (a->conn->in < 0 && a->endings == 0) {
                serve_attempt_remove(serve, a); /* No client can end it. */
                continue;
            }
        } else if (a->due_ms <= now_ms) {
            schedule(serve, a);
            if (is_renewed(a, now_ms)) {
                renew(serve, a);
            }
        }
        serve_due(serve, a->due_ms);
    }
}

/* ---- Ends that nobody asked for ------------------------------------------ */

/* While the store is unavailable, tells it again until the lease is over. */
static void told(struct serve_call *call)
{
    int code = idem_op_code(call->op);

    if (idem_error_kind(code) == IDEM_KIND_RETRY &&
        serve_now_ms(call->serve) < call->settle_ms) {
        serve_call_retry(call);
        return;
    }
    if (code == 0) {
        serve_calls_wake(call->serve, idem_op_id(call->op));
    }
    serve_call_end(call);
}

static void tell(struct serve *serve, struct serve_conn *conn,
                 const struct idem_attempt *attempt, enum idem_status status,
                 const char *text, int64_t until_ms)
{
    const struct idem_outcome outcome = {.status = status,
                                         .text = idem_str(text)};
    struct idem_op *op = NULL;
    int rc = status == IDEM_STATUS_IN_PROGRESS
                 ? idem_op_expire(attempt, &op, NULL)
                 : idem_op_end(attempt, &outcome, &op, NULL);
    struct serve_call *call = submit(serve, conn, rc, op, told);

    if (call != NULL && until_ms > call->settle_ms) {
        call->settle_ms = until_ms;
    }
}

void serve_give_back(struct serve *serve, struct serve_conn *conn,
                     const struct idem_attempt *attempt)
{
    tell(serve, conn, attempt, IDEM_STATUS_RELEASED,
         "its caller was not told that it had the key", /* until_ms= */ 0);
}

void serve_attempt_give_back(struct serve *serve, struct serve_attempt *a)
{
    serve_give_back(serve, a->conn, a->attempt);
    serve_attempt_remove(serve, a);
}

static bool was_told(const struct serve_attempt *a)
{
    return a->conn->sent >= a->told_at;
}

/* Under hold a person has to look in any case, and so learns of it now. Under rerun the
 * work may go on in a child of the dead process, so its lease decides, unless the begin
 * said that the work ends with the process. */
static void settle_dead(struct serve *serve, struct serve_attempt *a)
{
    if (a->attempt->record->on_expired_lease == IDEM_HOLD) {
        tell(serve, a->conn, a->attempt, IDEM_STATUS_UNKNOWN,
             "the process that had the key died", a->lease_end_ms);
    } else if (a->now) {
        tell(serve, a->conn, a->attempt, IDEM_STATUS_IN_PROGRESS, NULL,
             a->lease_end_ms);
    }
    serve_attempt_remove(serve, a);
}

void serve_attempts_leave(struct serve *serve, struct serve_conn *conn)
{
    struct serve_attempt *next;
    struct serve_attempt *a;

    for (a = serve->attempts.first; a != NULL; a = next) {
        next = a->next;
        if (a->conn != conn || a->endings > 0) {
            continue;
        }
        if (!was_told(a) && !serve_conn_hears(conn)) {
            serve_attempt_give_back(serve, a);
        } else if (conn->dead) {
            settle_dead(serve, a);
        } else if (a->lost ||
                   (a->lease_end_ms == IDEM_NEVER && conn->death < 0)) {
            serve_attempt_remove(serve, a);
        }
    }
}
