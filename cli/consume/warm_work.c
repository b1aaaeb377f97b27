/* One message for a command that is kept running: the claim, the line, the answer,
 * the outcome. */
#include "consume/warm.h"
#include "process/io.h"
#include "process/random.h"
#include "record/verdict.h"
#include "request/request.h"
#include "run/channel.h"
#include "run/ending.h"
#include "run/lease.h"
#include "run/run.h"
#include "run/status_report.h"
#include "run/supervisor.h"
#include "run/watch.h"
#include "run/work.h"
#include "store/journal.h"
#include "store/open.h"
#include "store/patience.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- The message ---- */

/* To be freed; NULL after saying why. */
static char *read_message(const struct warm *warm, struct warm_message *message)
{
    const struct warm_task *task = &warm->task;
    size_t len = task->id_len + task->group_len + task->body_len;
    char *text = malloc(len + 1);

    if (text == NULL || pread(warm->body_fd, text, len, 0) != (ssize_t)len) {
        cli_say("a message could not be read: out of memory");
        free(text);
        return NULL;
    }
    message->id = idem_bytes(text, task->id_len);
    message->group = idem_bytes(text + task->id_len, task->group_len);
    message->body =
        idem_bytes(text + task->id_len + task->group_len, task->body_len);
    message->receives = task->receives;
    return text;
}

/* ---- The claim ---- */

/* A store that is away now may be there for the next message. */
static int open_store(struct warm *warm)
{
    struct run *run = &warm->run;
    struct idem_host host = run_nonce_host(&run->nonce);
    int status = 0;

    if (run->store == NULL) {
        status = cli_open_store_as(run->options->store, /* flags= */ 0, &host,
                                   &run->store);
    }
    if (status != 0) {
        status_report_set_error(&run->report, "the store cannot be opened");
    }
    return status;
}

/* 0 with run->attempt, or an exit status. */
static int claim(struct warm *warm, const struct warm_message *message)
{
    struct run *run = &warm->run;
    int status;

    warm->claim.key = warm->task.identity.key;
    warm->claim.fingerprint = warm->task.identity.fingerprint;
    status = cli_request_init(&run->asked, warm->consume->command, &warm->claim,
                              /* argc= */ 0, /* argv= */ NULL);
    if (status != 0) {
        return status;
    }
    status_report_init(&run->report, run->asked.request.scope,
                       run->asked.request.key);
    if (warm->consume->options->keep_input) {
        run->asked.request.input = message->body;
    }
    if (cli_random(run->nonce.bytes, sizeof(run->nonce.bytes)) != 0) {
        return CLI_UNAVAILABLE;
    }
    run->asks = false;
    status = open_store(warm);
    if (status == 0) {
        status = run_settle_journal(run);
    }
    return status != 0 ? status : run_claim(run);
}

/* ---- The answer ---- */

static int tell_supervisor(struct warm *warm, struct supervisor_order *order)
{
    const struct idem_attempt *attempt = warm->run.attempt;
    struct lease *lease = &warm->watch.lease;

    lease_init(lease, warm->run.store, warm->run.attempt, &warm->supervisor);
    lease_let_go(
        lease); /* It is renewed when the command says that it works. */
    memset(order, 0, sizeof(*order));
    order->kind = SUPERVISOR_TASK;
    order->kill_at_ms = lease_kill_at_ms(lease);
    order->grace_ms = lease_grace_ms(lease, warm->options.kill_after_ms);
    order->policy = attempt->record->on_expired_lease;
    order->task.fence = attempt->fence;
    order->task.attempts = attempt->attempts;
    order->task.takeover = attempt->takeover;
    if (idem_attempt_token(attempt, order->task.token) != 0) {
        return -1;
    }
    (void)supervisor_tell(&warm->supervisor, order, &channel_no_fds);
    return 0;
}

/* True with the answer that ends the message; false: the command has ended. */
static bool await_answer(struct warm *warm, struct idem_slice id,
                         struct warm_answer *answer)
{
    for (;;) {
        while (warm_next_answer(warm, id, answer)) {
            bool early =
                answer->has_fence && answer->fence != warm->run.attempt->fence;

            if (!early && answer->outcome != WARM_WORKING) {
                return true;
            }
            if (early) {
                cli_say(
                    "the command answered an earlier delivery of its message "
                    "again; its first answer counts");
            } else {
                lease_renew(&warm->watch.lease);
                lease_let_go(&warm->watch.lease);
            }
            warm_answer_finish(answer);
        }
        if (warm_is_over(warm)) {
            return false;
        }
        warm_turn(warm);
    }
}

/* ---- The outcome ---- */

/* A message that the queue gives up after this receive is to be found as failed. */
static enum idem_status status_of(const struct warm *warm,
                                  enum warm_outcome outcome)
{
    switch (outcome) {
    case WARM_DONE:
        break;
    case WARM_FAIL:
        return IDEM_STATUS_FAILED;
    case WARM_RETRY:
        return warm->task.is_last ? IDEM_STATUS_FAILED : IDEM_STATUS_RETRY;
    case WARM_UNKNOWN:
        return IDEM_STATUS_UNKNOWN;
    case WARM_RELEASE:
    case WARM_WORKING:
        return IDEM_STATUS_RELEASED;
    }
    return IDEM_STATUS_COMPLETED;
}

static void decide(const struct warm *warm, const struct warm_answer *answer,
                   struct ending *e)
{
    bool done = answer->outcome == WARM_DONE;

    memset(e, 0, sizeof(*e));
    e->status = status_of(warm, answer->outcome);
    e->exit_status = done ? 0 : 1;
    e->ended_ms = io_now_ms();
    (void)snprintf(e->meta, sizeof(e->meta), "exit %d\n", e->exit_status);
    e->result.meta = idem_str(e->meta);
    if (answer->result.len > 0) {
        e->result.bytes = answer->result;
        e->result.content_type = idem_str("application/json");
    }
    if (answer->error.len > 0) {
        (void)cli_escape(answer->error, e->text, sizeof(e->text));
    } else {
        (void)snprintf(e->text, sizeof(e->text), "the command answered %s",
                       warm_outcome_name(answer->outcome));
    }
}

/* The exit status. */
static int record(struct warm *warm, const struct ending *ending)
{
    struct run *run = &warm->run;
    struct idem_error error = {0};

    error.code = ending_record(run, ending, &error);
    if (error.code != 0) {
        return ending_not_recorded(run, ending, &error);
    }
    cli_journal_catch_up(run->store, run_says(run, RUN_REMARK));
    return ending->exit_status;
}

static int end_with_answer(struct warm *warm, const struct warm_answer *answer)
{
    struct ending ending;

    lease_lift(&warm->watch.lease);
    decide(warm, answer, &ending);
    free(warm->ended_id);
    warm->ended_id = strndup(answer->id.base, answer->id.len);
    if (warm->in.written < warm->in.len) {
        warm_break(warm, "the command answered before it had read the line");
    }
    return record(warm, &ending);
}

/* The command ended with nothing of the line read. After a takeover the next one must
 * know of the attempt before. */
static int take_back(struct warm *warm, bool *ret_begun)
{
    struct run *run = &warm->run;
    struct ending ending = {
        .status = run->attempt->takeover ? IDEM_STATUS_IN_PROGRESS
                                         : IDEM_STATUS_RELEASED,
        .text = "the command ended before it read the message",
    };
    struct idem_error error = {0};

    error.code = ending_record(run, &ending, &error);
    *ret_begun = error.code != 0;
    run->report.recorded = false;
    return error.code == 0 ? 0 : cli_fail_before("nothing was run", &error);
}

/* It ended at work: the policy of the record decides, as for any command that dies. */
static int end_with_crash(struct warm *warm, bool *ret_begun)
{
    struct run *run = &warm->run;
    struct ending ending = {.exit_status = 1, .ended_ms = io_now_ms()};

    warm_end_text(warm, ending.text, sizeof(ending.text));
    if (warm->watch.survived) {
        run->report.executed = true;
        return survived_say(run, &warm->watch, &ending);
    }
    if (warm_writer_is_unread(&warm->in)) {
        return take_back(warm, ret_begun);
    }
    run->report.executed = true;
    run->report.signal = warm->watch.end.signal;
    ending.status = run->attempt->record->on_expired_lease == IDEM_RERUN
                        ? IDEM_STATUS_IN_PROGRESS
                        : IDEM_STATUS_UNKNOWN;
    status_report_set_error(&run->report, ending.text);
    return record(warm, &ending);
}

/* ---- All of it ---- */

/* The attempt is ours: the exit status. */
static int attend(struct warm *warm, const struct warm_message *message,
                  struct warm_news *news)
{
    struct supervisor_order order;
    struct warm_answer answer;
    char *line = NULL;
    bool begun = true;
    int status;

    cli_patience_set(warm->run.store,
                     cli_patience_ms(&warm->run.patience, warm->run.store, 0));
    if (tell_supervisor(warm, &order) == 0) {
        line = warm_message_line(message, warm->run.attempt, order.task.token,
                                 &warm->in.len);
    }
    explicit_bzero(&order, sizeof(order));
    if (line == NULL) {
        (void)ending_release(&warm->run, "out of memory");
        return CLI_UNAVAILABLE;
    }
    warm->in.line = line;
    warm->in.written = 0;
    warm_writer_move(&warm->in);
    if (await_answer(warm, message->id, &answer)) {
        news->answered = true;
        warm->run.report.executed = true;
        status = end_with_answer(warm, &answer);
        warm_answer_finish(&answer);
    } else {
        status = end_with_crash(warm, &begun);
    }
    if (!begun) {
        news->kind = WARM_NOT_BEGUN;
    }
    warm->in.len = warm->in.written = 0;
    free(line);
    return status;
}

static int begin(struct warm *warm, const struct warm_message *message,
                 struct warm_news *news)
{
    struct run *run = &warm->run;
    int status = claim(warm, message);

    if (status != 0) {
        return status;
    }
    if (run->attempt->verdict != IDEM_STARTED) {
        status = cli_exit_of_verdict(run->attempt->verdict);
        return status == CLI_REPLAY ? 0 : status;
    }
    return attend(warm, message, news);
}

static int try_to_begin(struct warm *warm, struct warm_news *news)
{
    struct warm_message message;
    char *text = read_message(warm, &message);
    int status = CLI_UNAVAILABLE;

    status_report_init(&warm->run.report, idem_str(NULL), idem_str(NULL));
    if (text != NULL && warm->refused != 0) {
        status = warm->refused;
    } else if (text != NULL) {
        status = begin(warm, &message, news);
    }
    free(text);
    return status;
}

void warm_work(struct warm *warm)
{
    struct warm_news news = {.kind = WARM_TOLD};
    struct run *run = &warm->run;
    int status = 0;

    /* A worker that dies without this had not taken the message. */
    (void)!ftruncate(warm->status_fd, 1);
    watch_listen(&warm->watch);
    if (warm->refused == 0 &&
        (warm_is_over(warm) || warm->watch.ended || warm->broken[0] != '\0')) {
        news.kind = WARM_NOT_BEGUN;
    } else {
        status = try_to_begin(warm, &news);
        supervisor_say(&warm->supervisor, SUPERVISOR_IDLE);
        (void)lseek(warm->status_fd, 0, SEEK_SET);
        status_report_tell(&run->report, status, warm->status_fd,
                           /* path= */ NULL);
        status_report_finish(&run->report);
        idem_attempt_destroy(run->attempt);
        run->attempt = NULL;
        cli_request_finish(&run->asked);
    }
    if (warm->channel >= 0) {
        (void)channel_send(warm->channel, &news, sizeof(news), &channel_no_fds);
    }
}
