/* Tells stores the outcomes that wait in a journal. */
#include "contract/store.h"
#include "decide/reconcile.h"
#include "process/host.h"
#include "record/verdict.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/screen.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    AWAY_MAX = 3 /* A store is given up after so many failures in a row. */
};

/* URLs of stores, as entries have them. */
struct urls {
    char **urls;
    size_t len;
    bool failed; /* Out of memory. */
};

/* One pass over the journal. */
struct round {
    const struct cli_reconcile_how *how;
    struct idem_store *store; /* The one that is being told. */
    struct urls wanted;       /* The stores of all entries, if each_its_own. */
    struct urls told;         /* Entries for these have been told. */
    int printed;              /* Exit status of the output. */
    int status;               /* The worst of the entries so far. */
    uint64_t len;             /* How many entries have been shown. */
    uint64_t waiting;         /* How many there were to tell. */
    unsigned away;            /* How often in a row the store did not answer. */
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

static void add_url(struct urls *urls, struct idem_slice url)
{
    char **more;

    if (urls->failed || has(urls, url)) {
        return;
    }
    more = realloc(urls->urls, (urls->len + 1) * sizeof(*more));
    if (more != NULL) {
        urls->urls = more;
        more[urls->len] = strndup(url.base, url.len);
    }
    urls->failed = more == NULL || more[urls->len] == NULL;
    urls->len += !urls->failed;
}

static void free_urls(struct urls *urls)
{
    size_t i;

    for (i = 0; i < urls->len; i++) {
        free(urls->urls[i]);
    }
    free(urls->urls);
}

/* A lost outcome is the worst, because a person must know of it. An entry in use is the
 * least, because another process is recording it. */
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

static bool is_due(const struct idem_journal_info *info)
{
    return info->state == IDEM_JOURNAL_WAITING && cli_waiting_known(info);
}

/* Stops once the store has not answered for AWAY_MAX entries in a row. */
static int told_one(void *ctx, const struct idem_journal_info *info,
                    const struct idem_error *error)
{
    struct round *round = ctx;
    bool away = info->state == IDEM_JOURNAL_WAITING &&
                idem_error_kind(error->code) == IDEM_KIND_RETRY;

    if (info->state == IDEM_JOURNAL_IN_USE ||
        info->state == IDEM_JOURNAL_NEWER) {
        return 0; /* show_rest() shows it. */
    }
    worsen(round, status_of(info, error));
    round->away = away ? round->away + 1 : 0;
    return show(round, info, info->state, error) || round->away >= AWAY_MAX;
}

/* Predicts the store's answer: LOST, or that it has recorded the outcome. */
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
    idem__decide_end(answer != NULL ? idem_answer_record(answer) : NULL, &op,
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

    if (!is_due(info)) {
        return 0; /* A store would not be told of it. */
    }
    switch (dry_run_end(round->store, info, &why)) {
    case IDEM_OK:
        state = IDEM_JOURNAL_RECORDED;
        break;
    case IDEM_ELOST:
        state = IDEM_JOURNAL_LOST;
        break;
    default: /* The answer cannot be predicted. */
        worsen(round, cli_exit_of(why.code));
        break;
    }
    return show(round, info, state, &why);
}

/* Tells the open store what was meant for @url. */
static int tell(struct idem_journal *journal, struct round *round,
                const char *url)
{
    struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
    struct idem_error error = {0};

    filter.store_url = url;
    error.code =
        round->how->style.dry_run
            ? idem_journal_list(journal, &filter, dry_run_one, round, &error)
            : idem_journal_replay(journal, round->store, &filter, told_one,
                                  round, &error);
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

static int open_store(struct round *round, const char *url)
{
    unsigned flags = round->how->style.dry_run
                         ? IDEM_OPEN_READONLY
                         : IDEM_OPEN_NO_CREATE | CLI_OPEN_FOR_PERSON;

    round->away = 0;
    cli_progress("reconciling", round->len, round->waiting);
    return cli_open_store(url, flags, &round->store);
}

static void close_store(struct round *round)
{
    idem_close(round->store);
    round->store = NULL;
}

/* ---- Which stores ------------------------------------------------------ */

/* An entry has the URL that its store had when the entry was written. The store may have
 * another URL now, for example because a directory became a link. If the user names the
 * store by the old URL, entries with either URL are meant for it. */
static void choose(struct round *round)
{
    const char *own = idem_store_url(round->store);
    const char *named = round->how->store;

    if (round->how->from != NULL) {
        own = NULL;
        named = round->how->from;
    }
    if (own != NULL) {
        add_url(&round->told, idem_str(own));
    }
    if (named != NULL) {
        add_url(&round->told, idem_str(named));
    }
}

/* False: it could not be opened. */
static bool reconcile_named(struct idem_journal *journal, struct round *round)
{
    int status = open_store(round, round->how->store);
    size_t i;

    if (status != 0) {
        worsen(round, status);
        return false;
    }
    choose(round);
    for (i = 0; i < round->told.len && round->away < AWAY_MAX; i++) {
        worsen(round, tell(journal, round, round->told.urls[i]));
    }
    close_store(round);
    return true;
}

/* Goes on with the other stores when one fails. */
static void reconcile_each(struct idem_journal *journal, struct round *round)
{
    size_t i;

    for (i = 0; i < round->wanted.len; i++) {
        const char *url = round->wanted.urls[i];
        int status = open_store(round, url);

        if (status == 0) {
            add_url(&round->told, idem_str(url));
            status = tell(journal, round, url);
            close_store(round);
        }
        worsen(round, status);
    }
}

static int count_one(void *ctx, const struct idem_journal_info *info,
                     const struct idem_error *error)
{
    struct round *round = ctx;

    (void)error;
    if (is_due(info)) {
        round->waiting++;
        if (round->how->each_its_own) {
            add_url(&round->wanted, info->store_url);
        }
    }
    return round->wanted.failed;
}

/* ---- Entries that were told to no store -------------------------------- */

/* "idem: for URL: name it with --store", as it can be typed. */
static void say_unnamed(struct idem_slice store_url)
{
    char *url = strndup(store_url.base, store_url.len);
    char *text = NULL;
    size_t len;
    FILE *f = url != NULL ? open_memstream(&text, &len) : NULL;

    if (f != NULL) {
        cli_print_url(f, url);
        if (fclose(f) == 0) {
            cli_say("for %s: name it with --store", text);
        }
    }
    free(text);
    free(url);
}

static int show_unnamed(struct round *round,
                        const struct idem_journal_info *info)
{
    static const struct idem_error none = {0};
    static const struct idem_error why = {
        IDEM_ECONFIG, "its store is another one: name it with --store"};
    int stop;

    worsen(round, cli_exit_of(why.code));
    if (round->how->style.json) {
        return show(round, info, info->state, &why);
    }
    stop = show(round, info, info->state, &none);
    say_unnamed(info->store_url);
    return stop;
}

/* Shows the entries that have not been shown. Those that were set aside have been. */
static int show_rest(void *ctx, const struct idem_journal_info *info,
                     const struct idem_error *error)
{
    struct round *round = ctx;
    const char *end = strrchr(info->name, '.');

    if (is_due(info)) {
        if (has(&round->told, info->store_url)) {
            return 0;
        }
        if (!round->how->each_its_own) {
            return show_unnamed(round, info);
        }
        worsen(round, CLI_UNAVAILABLE); /* open_store() said why. */
        return show(round, info, info->state, error);
    }
    if (info->state == IDEM_JOURNAL_LOST ||
        (info->state == IDEM_JOURNAL_DAMAGED && end != NULL &&
         strcmp(end, ".idj") != 0)) {
        return 0;
    }
    worsen(round, status_of(info, error));
    return show(round, info, info->state, error);
}

/* ---- All of it --------------------------------------------------------- */

static void go(struct idem_journal *journal, struct round *round)
{
    struct idem_error error = {0};
    bool opened = true;

    error.code = idem_journal_list(journal, NULL, count_one, round, &error);
    if (error.code == 0 && round->how->each_its_own) {
        reconcile_each(journal, round);
    } else if (error.code == 0 &&
               (round->how->store != NULL || round->how->from != NULL)) {
        opened = reconcile_named(journal, round);
    }
    if (error.code == 0 && (round->wanted.failed || round->told.failed)) {
        error.code = IDEM_ENOMEM;
    }
    if (error.code == 0 && opened && round->printed == 0) {
        error.code = idem_journal_list(journal, NULL, show_rest, round, &error);
    }
    if (error.code != 0) {
        worsen(round, cli_fail_with(&error));
    }
}

int cli_reconcile_journal(struct idem_journal *journal,
                          const struct cli_reconcile_how *how)
{
    struct round round = {.how = how};

    go(journal, &round);
    free_urls(&round.wanted);
    free_urls(&round.told);
    cli_progress_end();
    if (round.len == 0 && round.status == 0 && cli_stderr_is_tty()) {
        cli_say("nothing waits");
    }
    return round.printed != 0 ? round.printed : round.status;
}
