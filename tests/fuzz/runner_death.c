/* What the supervisor writes after the death of the runner. Whatever the record is by
 * then, whatever the token, only the attempt that died is touched: work that did
 * not run is given up, work that may have run is over or unknown, as the policy
 * says; an outcome that is on record stays, and so does every other attempt. While
 * the store is away, each try is followed by a pause.
 */
#include "fuzz.h"
#include "host.h"
#include "run/child.h"
#include "run/run.h"
#include "run/supervisor.h"
#include "text/exit_status.h"

#include <poll.h>
#include <stdlib.h>

int __wrap_cli_open_store_as(const char *url, unsigned flags,
                             const struct idem_host *host,
                             struct idem_store **ret_store);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
void __wrap_idem_close(struct idem_store *store);
void __real_idem_close(struct idem_store *store);

static struct host host;
static struct idem_store *store;
static const struct idem_host *asked_with; /* The host it was opened with. */
static unsigned opened;
static unsigned away; /* How often the store cannot be opened, */
static unsigned refused;
static unsigned pauses; /* and how often the supervisor has paused since. */

/* The supervisor opens the one store of this program, and does not close it. */
int __wrap_cli_open_store_as(const char *url, unsigned flags,
                             const struct idem_host *with,
                             struct idem_store **ret_store)
{
    must(url == NULL && flags == IDEM_OPEN_NO_CREATE);
    if (pauses < away) {
        must(refused++ == pauses);
        return CLI_UNAVAILABLE;
    }
    asked_with = with;
    *ret_store = store;
    opened++;
    return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    must(fds == NULL && n == 0 && timeout_ms > 0);
    pauses++;
    return 0;
}

void __wrap_idem_close(struct idem_store *closed)
{
    must(closed == store && opened == 1);
    asked_with = NULL;
    opened = 0;
}

static int draw(void *ctx, void *buf, size_t len)
{
    if (asked_with != NULL) {
        return asked_with->random(asked_with->ctx, buf, len);
    }
    random_fill(&((struct host *)ctx)->drawn, buf, len);
    return 0;
}

static void open_store(void)
{
    struct idem_open_options options;

    host_init(&host);
    options = host_options(&host, /* sleeping= */ true);
    options.host.random = draw;
    must(idem_open("memory:", &options, &store, NULL) == 0);
}

static struct idem_request take_request(struct tape *tape)
{
    struct idem_request request = IDEM_REQUEST_INIT;

    request.key = idem_str("k");
    request.on_expired_lease = take_bool(tape) ? IDEM_RERUN : IDEM_HOLD;
    request.lease_ms = IDEM_LEASE_MIN_MS;
    request.attempts_max = take_up_to(tape, 3);
    return request;
}

/* What may have become of an attempt by the time that its runner is buried. */
static void go_on(struct tape *tape, struct idem_attempt *attempt)
{
    switch (take_up_to(tape, 6)) {
    case 0:
        must(idem_complete(attempt, NULL, NULL) == 0);
        break;
    case 1:
        must(idem_fail(attempt, idem_str("x"), NULL, NULL) == 0);
        break;
    case 2:
        must(idem_release(attempt, idem_str("x"), NULL) == 0);
        break;
    case 3:
        must(idem_unknown(attempt, idem_str("x"), NULL) == 0);
        break;
    case 4:
        must(idem_expire(attempt, NULL) == 0);
        break;
    default:
        break;
    }
    host_pass(&host, take_bool(tape) ? IDEM_LEASE_MIN_MS : 1);
}

/* False: there is no record. */
static bool look(struct idem_answer **ret_answer)
{
    return idem_get(store, idem_str(""), idem_str("k"), ret_answer, NULL) == 0;
}

/* True if the next claimant under the same policy would not wait. */
static bool is_over(void)
{
    struct idem_answer *answer;
    bool over;

    must(look(&answer));
    over = idem_answer_record(answer)->lease_end_boot_ms <= host.boot_ms;
    idem_answer_destroy(answer);
    return over;
}

static void bury_work(struct tape *tape, struct idem_attempt *attempt)
{
    struct run_options options = {.store = NULL};
    struct run run = {.options = &options};
    struct supervisor_order order = {.kind = SUPERVISOR_START};
    const struct child_end end = {.exit_status = 0};
    struct idem_answer *before;
    struct idem_answer *after;
    bool had = look(&before);
    bool ran = take_bool(tape);
    const struct idem_record *record;
    bool own;
    bool cut; /* Its lease spoke for it. */

    order.policy = attempt->record->on_expired_lease;
    order.task.takeover = attempt->takeover;
    must(idem_attempt_token(attempt, order.task.token) == 0);
    own = had && idem_answer_record(before)->fence == attempt->fence;
    if (take_u8(tape) == 77) {
        order.task.token[take_u8(tape) % strlen(order.task.token)] ^= 1;
        own = false;
    }
    runner_death_of_work(&run, &order, ran ? &end : NULL, "it died");
    must(look(&after) == had);
    if (!had) {
        return;
    }
    record = idem_answer_record(before);
    cut = own && record->by_lease && ran && order.policy == IDEM_HOLD;
    own = own && record->status == IDEM_STATUS_IN_PROGRESS;
    record = idem_answer_record(after);
    if (!own && !cut) {
        must(same_record(idem_answer_record(before), record));
    } else if (own && !ran && !attempt->takeover) {
        must(record->status == IDEM_STATUS_RELEASED);
    } else if (own && (!ran || order.policy == IDEM_RERUN)) {
        must(record->status == IDEM_STATUS_IN_PROGRESS && is_over());
    } else {
        must(record->status == IDEM_STATUS_UNKNOWN && !record->by_lease);
    }
    idem_answer_destroy(before);
    idem_answer_destroy(after);
}

static bool is_done(const struct idem_record *record)
{
    return record->status == IDEM_STATUS_COMPLETED ||
           record->status == IDEM_STATUS_FAILED ||
           record->status == IDEM_STATUS_UNKNOWN;
}

/* The runner asked for the key, and may have got it, or not. */
static void bury_claim(struct tape *tape)
{
    struct run_options options = {.store = NULL};
    struct run run = {.options = &options};
    struct idem_attempt *attempt = NULL;
    struct idem_answer *before;
    struct idem_answer *after;
    const struct idem_record *record;
    bool had;

    memset(run.nonce.bytes, 'n', sizeof(run.nonce.bytes));
    run.asked.request = take_request(tape);
    run.asked.request.wait_ms = 1000;
    if (take_bool(tape)) {
        struct run_nonce nonce = run.nonce;
        struct idem_host with = run_nonce_host(&nonce);

        nonce.is_due = true;
        asked_with = &with;
        run.asked.request.wait_ms = 0;
        must(idem_begin(store, &run.asked.request, &attempt, NULL) == 0);
        asked_with = NULL;
    }
    had = look(&before);
    runner_death_of_claim(&run);
    must(look(&after));
    record = idem_answer_record(after);
    if (had && is_done(idem_answer_record(before))) {
        must(same_record(record, idem_answer_record(before)));
    }
    /* Whoever has it at work is another one, or it is over. */
    must(record->status != IDEM_STATUS_IN_PROGRESS ||
         memcmp(record->nonce, run.nonce.bytes, 16) != 0 || is_over());
    if (had) {
        idem_answer_destroy(before);
    }
    idem_answer_destroy(after);
    idem_attempt_destroy(attempt);
}

FUZZ_HUSHED

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);
    struct idem_attempt *attempts[4] = {NULL};
    unsigned n = take_up_to(&tape, 3);
    unsigned i;

    open_store();
    away = len % 3;
    refused = 0;
    pauses = 0;
    for (i = 0; i < n; i++) {
        struct idem_request request = take_request(&tape);

        must(idem_begin(store, &request, &attempts[i], NULL) == 0);
        if (attempts[i]->verdict == IDEM_STARTED) {
            go_on(&tape, attempts[i]);
        }
    }
    i = take_up_to(&tape, 3);
    if (attempts[i] != NULL && attempts[i]->verdict == IDEM_STARTED) {
        bury_work(&tape, attempts[i]);
    } else {
        bury_claim(&tape);
    }
    for (i = 0; i < 4; i++) {
        idem_attempt_destroy(attempts[i]);
    }
    __real_idem_close(store);
    return 0;
}
