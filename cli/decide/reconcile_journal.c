/* Tells stores the outcomes that wait in a journal. */
#include "decide/reconcile.h"
#include "process/clock.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/progress.h"
#include "text/screen.h"

#include <idem/store.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    AWAY_MAX = 3
};

/* One go through the journal. */
struct round {
    const struct cli_reconcile_how *how;
    struct idem_store *store; /* That is told. */
    bool all;     /* Of several stores: what is for none comes at the end. */
    int printed;  /* Exit status of the output. */
    int status;   /* The states of the entries, the worst so far. */
    uint64_t len; /* Of those that were shown. */
    uint64_t waiting; /* How many there are to be told; 0: not counted. */
    unsigned away;    /* How often in a row the store did not answer. */
};

/* A person must know what was lost; what waits can wait. */
static int rank(int status)
{
    switch (status) {
    case CLI_OK:
        return 0;
    case CLI_BUSY:
        return 1;
    case CLI_CORRUPT:
        return 3;
    case CLI_NOT_RECORDED:
        return 4;
    default:
        return 2;
    }
}

int cli_reconcile_worse(int a, int b)
{
    return rank(b) > rank(a) ? b : a;
}

static void worsen(struct round *round, int status)
{
    round->status = cli_reconcile_worse(round->status, status);
}

static int show(struct round *round, const struct idem_journal_info *info,
                enum idem_journal_state state, const struct idem_error *error)
{
    round->len++;
    cli_progress_hide(); /* Stdout may be the same terminal. */
    round->printed = cli_waiting_print(&round->how->style, info, state, error);
    (void)fflush(stdout);
    cli_progress("reconciling", round->len, round->waiting);
    return round->printed != 0 || ferror(stdout);
}

/* ---- One store --------------------------------------------------------- */

static int status_of(const struct idem_journal_info *info,
                     const struct idem_error *error)
{
    switch (info->state) {
    case IDEM_JOURNAL_RECORDED:
        break;
    case IDEM_JOURNAL_IN_USE:
        return CLI_BUSY;
    case IDEM_JOURNAL_LOST:
        return CLI_NOT_RECORDED;
    case IDEM_JOURNAL_DAMAGED:
        return CLI_CORRUPT;
    case IDEM_JOURNAL_WAITING:
    case IDEM_JOURNAL_NEWER:
        return cli_exit_of(error->code);
    }
    return 0;
}

/* Cannot be told to any store, now or ever, and was not set aside. */
static bool is_left_over(const struct idem_journal_info *info)
{
    const char *end = strrchr(info->name, '.');

    return info->state == IDEM_JOURNAL_IN_USE ||
           info->state == IDEM_JOURNAL_NEWER ||
           (info->state == IDEM_JOURNAL_DAMAGED && end != NULL &&
            (strcmp(end, ".idj") == 0 || strcmp(end, ".new") == 0));
}

static int show_left_over(void *ctx, const struct idem_journal_info *info,
                          const struct idem_error *error)
{
    struct round *round = ctx;

    if (!is_left_over(info)) {
        return 0;
    }
    worsen(round, status_of(info, error));
    return show(round, info, info->state, error);
}

/* A store that does not answer again and again is not asked for the rest. */
static int told_one(void *ctx, const struct idem_journal_info *info,
                    const struct idem_error *error)
{
    struct round *round = ctx;
    bool away = info->state == IDEM_JOURNAL_WAITING &&
                idem_error_kind(error->code) == IDEM_KIND_RETRY;

    if (round->all && is_left_over(info)) {
        return 0;
    }
    worsen(round, status_of(info, error));
    round->away = away ? round->away + 1 : 0;
    return show(round, info, info->state, error) || round->away >= AWAY_MAX;
}

/* The store's answer, as foreseen: LOST, or that it is recorded. */
static int dry_run_end(struct idem_store *store,
                       const struct idem_journal_info *info,
                       struct idem_error *error)
{
    struct idem_answer *answer = NULL;
    struct idem_decision decision;
    struct idem_now now = {.store_ms = cli_now_ms()};
    struct idem_op op;
    int rc = idem_get(store, info->scope, info->key, &answer, error);

    if (rc != 0 && rc != IDEM_ENOTFOUND) {
        return rc;
    }
    memset(&op, 0, sizeof(op));
    op.verb = IDEM_OP_END;
    memcpy(op.nonce, info->nonce, sizeof(op.nonce));
    op.fence = info->fence;
    op.u.end = info->outcome;
    idem_decide_end(answer != NULL ? idem_answer_record(answer) : NULL, &op,
                    &now, &decision);
    (void)snprintf(error->text, sizeof(error->text), "%s", decision.text);
    error->code = decision.code;
    idem_answer_destroy(answer);
    return decision.code;
}

static int dry_run_one(void *ctx, const struct idem_journal_info *info,
                       const struct idem_error *error)
{
    struct round *round = ctx;
    struct idem_error why = *error;
    enum idem_journal_state state = info->state;

    if (state != IDEM_JOURNAL_WAITING || !cli_waiting_known(info)) {
        return 0; /* Nothing would be told. */
    }
    switch (dry_run_end(round->store, info, &why)) {
    case IDEM_OK:
        state = IDEM_JOURNAL_RECORDED;
        break;
    case IDEM_ELOST:
        state = IDEM_JOURNAL_LOST;
        break;
    default:
        break;
    }
    return show(round, info, state, &why);
}

static int go(struct idem_journal *journal, struct round *round)
{
    struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
    struct idem_error error = {0};

    filter.store_url = round->how->from;
    if (!round->how->style.dry_run) {
        error.code = idem_journal_replay(journal, round->store, &filter,
                                         told_one, round, &error);
    } else {
        if (round->how->from == NULL) {
            filter.store_url = idem_store_url(round->store);
        }
        error.code =
            idem_journal_list(journal, &filter, dry_run_one, round, &error);
    }
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

/* In one store; what goes wrong with it does not keep the others waiting. */
static void reconcile_one(struct idem_journal *journal, const char *url,
                          struct round *round)
{
    unsigned flags = round->how->style.dry_run
                         ? IDEM_OPEN_READONLY
                         : IDEM_OPEN_NO_CREATE | CLI_OPEN_FOR_PERSON;
    int status = cli_open_store(url, flags, &round->store);

    round->away = 0;
    cli_progress("reconciling", round->len, round->waiting);
    if (status == 0) {
        status = go(journal, round);
        idem_close(round->store);
        round->store = NULL;
    }
    if (status != 0) {
        worsen(round, status);
    }
}

/* ---- Which stores ------------------------------------------------------ */

struct urls {
    char **urls;
    size_t len;
    uint64_t waiting; /* Outcomes for all of them. */
    bool failed;      /* Out of memory. */
};

static bool has(const struct urls *urls, struct idem_slice url)
{
    size_t i;

    for (i = 0; i < urls->len; i++) {
        if (strlen(urls->urls[i]) == url.len &&
            memcmp(urls->urls[i], url.base, url.len) == 0) {
            return true;
        }
    }
    return false;
}

static int add_url(void *ctx, const struct idem_journal_info *info,
                   const struct idem_error *error)
{
    struct urls *urls = ctx;
    char **more;

    (void)error;
    if (info->state != IDEM_JOURNAL_WAITING || !cli_waiting_known(info)) {
        return 0;
    }
    urls->waiting++;
    if (has(urls, info->store_url)) {
        return 0;
    }
    more = realloc(urls->urls, (urls->len + 1) * sizeof(*more));
    if (more != NULL) {
        urls->urls = more;
        more[urls->len] = strndup(info->store_url.base, info->store_url.len);
        urls->failed = more[urls->len] == NULL;
    }
    urls->failed = urls->failed || more == NULL;
    urls->len += !urls->failed;
    return urls->failed;
}

static void reconcile_all(struct idem_journal *journal, struct round *round)
{
    struct idem_error error = {0};
    struct urls urls = {.len = 0};
    size_t i;

    error.code = idem_journal_list(journal, NULL, add_url, &urls, &error);
    if (error.code == 0 && urls.failed) {
        error.code = IDEM_ENOMEM;
    }
    if (error.code != 0) {
        worsen(round, cli_fail_with(&error));
    }
    round->waiting = urls.waiting;
    for (i = 0; i < urls.len; i++) {
        reconcile_one(journal, urls.urls[i], round);
        free(urls.urls[i]);
    }
    free(urls.urls);
    if (error.code == 0) {
        (void)idem_journal_list(journal, NULL, show_left_over, round, NULL);
    }
}

int cli_reconcile_journal(struct idem_journal *journal,
                          const struct cli_reconcile_how *how)
{
    struct round round = {
        .how = how,
        .all = how->store == NULL && how->from == NULL,
    };

    if (round.all) {
        reconcile_all(journal, &round);
    } else {
        reconcile_one(journal, how->store, &round);
    }
    cli_progress_end();
    if (round.len == 0 && round.status == 0 && cli_stderr_is_tty()) {
        cli_say("nothing waits");
    }
    return round.printed != 0 ? round.printed : round.status;
}
