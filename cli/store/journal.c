/* Outcomes that wait on this host for their store. */
#include "store/journal.h"

#include "options/command.h"
#include "process/host.h"
#include "text/error.h"
#include "text/screen.h"
#include "text/text.h"

#include <errno.h>
#include <idem/journal.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#define IN_USE_MS                                                              \
    1000 /* A process that records an entry has ended by then, or
                          is stuck. */
#define IN_USE_PAUSE_MS 20

/* How long one command records the outcomes that others left: until it has done both
 * CATCH_UP_ENTRIES and CATCH_UP_MS, and never longer than CATCH_UP_LONGEST_MS. So the
 * next command makes good a short outage, and its user does not feel a long one. */
#define CATCH_UP_ENTRIES 16
#define CATCH_UP_MS 100
#define CATCH_UP_LONGEST_MS 1000

#define EMPTY_SETTLED_S 1

const char *const cli_journal_rules[] = {
    [CLI_JOURNAL_AUTO] = "auto",
    [CLI_JOURNAL_ALWAYS] = "always",
    [CLI_JOURNAL_ON_FAILURE] = "on-failure",
    [CLI_JOURNAL_OFF] = "off",
    NULL,
};

static int fail(struct idem_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(struct idem_error *error, int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    error->code = code;
    (void)vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    return code;
}

/* The directory that the user chose, or NULL: the journal is beside the default store. */
static const char *chosen(void)
{
    const char *given = secure_getenv("IDEM_JOURNAL_DIR");

    return given != NULL && *given != '\0' ? given : NULL;
}

/* Returns the path, which the caller frees; NULL with errno. */
static char *directory_path(void)
{
    const char *choice = chosen();

    return choice != NULL ? strdup(choice) : cli_state_path("journal");
}

int cli_journal_open(bool make, struct idem_journal **ret_journal,
                     char **ret_directory, struct idem_error *ret_error)
{
    char *directory = directory_path();

    *ret_directory = directory;
    if (directory == NULL && errno == ENOENT) {
        return fail(ret_error, IDEM_ENOTFOUND,
                    "no home directory for the journal; name a directory: "
                    "IDEM_JOURNAL_DIR");
    }
    if (directory == NULL) {
        return fail(ret_error, IDEM_ENOMEM, "%s", idem_error_text(IDEM_ENOMEM));
    }
    if (make && chosen() == NULL && cli_make_directories(directory) != 0) {
        return fail(ret_error, IDEM_EDENIED,
                    "cannot create the journal %.140s: %s; name another "
                    "directory: IDEM_JOURNAL_DIR",
                    directory, strerror(errno));
    }
    return idem_journal_open(directory, make, ret_journal, ret_error);
}

/* ---- Outcomes that wait ------------------------------------------------ */

/* One pass over the journal, and what it found. */
struct look {
    bool remarks;
    int64_t began_ms;
    unsigned told;
    unsigned waiting;
    unsigned in_use;
    enum idem_status status; /* Of one outcome that waits. */
    struct idem_error error; /* Why it waits. */
};

static void say_lost(const struct idem_journal_info *info,
                     const struct idem_error *error)
{
    char key[128];
    char when[48];

    cli_time_for(cli_stderr_is_tty(), info->written_ms, when);
    cli_say("the outcome of \"%s\" that waited in the journal since %s (%s) "
            "came too late: %s; it is set aside: idem reconcile --list",
            cli_escape(info->key, key, sizeof(key)), when,
            idem_status_name(info->outcome.status), error->text);
}

static void say_damaged(const struct idem_journal_info *info,
                        const struct idem_error *error)
{
    char key[128];

    cli_say("an outcome in the journal%s%s%s was set aside: %s; see: idem "
            "reconcile --list",
            info->key.len > 0 ? ", of \"" : "",
            cli_escape(info->key, key, sizeof(key)),
            info->key.len > 0 ? "\" it seems," : "", error->text);
}

static void say_recorded(const struct idem_journal_info *info)
{
    char key[128];

    cli_say("recorded the outcome of \"%s\" from the journal",
            cli_escape(info->key, key, sizeof(key)));
}

static void note_waiting(struct look *look,
                         const struct idem_journal_info *info,
                         const struct idem_error *error)
{
    look->waiting++;
    look->status = info->outcome.status;
    look->error = *error;
}

static int look_at(void *ctx, const struct idem_journal_info *info,
                   const struct idem_error *error)
{
    struct look *look = ctx;

    switch (info->state) {
    case IDEM_JOURNAL_RECORDED:
        if (look->remarks) {
            say_recorded(info);
        }
        break;
    case IDEM_JOURNAL_LOST:
        say_lost(info, error);
        break;
    case IDEM_JOURNAL_DAMAGED:
        say_damaged(info, error);
        break;
    case IDEM_JOURNAL_IN_USE:
        look->in_use++;
        break;
    case IDEM_JOURNAL_WAITING:
    case IDEM_JOURNAL_NEWER:
        note_waiting(look, info, error);
        break;
    }
    return 0;
}

/* Returns 0 or a code; *@ret_journal is NULL if no journal exists. A journal counts as
 * none if it belongs to another user, whose environment this process inherited, or if
 * others may write to it. With @say a message reports that, because no outcome could be
 * kept there. */
static int open_existing(const struct idem_store *store, bool say,
                         struct idem_journal **ret_journal,
                         struct idem_error *error)
{
    char *directory;
    int rc;

    *ret_journal = NULL;
    if (idem_store_url(store) == NULL) {
        return 0;
    }
    rc = cli_journal_open(/* make= */ false, ret_journal, &directory, error);
    free(directory);
    if (rc == IDEM_EDENIED && say) {
        cli_say("%s; cannot keep outcomes there: name your own directory in "
                "IDEM_JOURNAL_DIR",
                error->text);
    }
    return rc == IDEM_ENOTFOUND || rc == IDEM_EDENIED ? 0 : rc;
}

static void replay_one_record(struct idem_journal *journal,
                              struct idem_store *store, const uint8_t *id,
                              struct look *look)
{
    struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
    int64_t until_ms = cli_mono_ms() + IN_USE_MS;
    struct idem_error error = {0};

    filter.id = id;
    do {
        if (look->in_use > 0) {
            (void)poll(NULL, 0, IN_USE_PAUSE_MS);
        }
        look->in_use = 0;
        look->waiting = 0;
        if (idem_journal_replay(journal, store, &filter, look_at, look,
                                &error) != 0) {
            look->waiting = 1; /* The journal could not be read to its end. */
            look->error = error;
        }
    } while (look->in_use > 0 && look->waiting == 0 &&
             cli_mono_ms() < until_ms);
}

enum cli_journal_settled cli_journal_settle(struct idem_store *store,
                                            struct idem_slice scope,
                                            struct idem_slice key, bool remarks,
                                            struct idem_error *ret_error)
{
    struct look look = {.remarks = remarks};
    struct idem_journal *journal;
    uint8_t id[IDEM_ID_LEN];
    int rc = open_existing(store, /* say= */ true, &journal, ret_error);

    if (rc == 0 && journal == NULL) {
        return CLI_JOURNAL_CLEAR;
    }
    if (rc == 0) {
        rc = idem_id(scope, key, id);
    }
    if (rc != 0) {
        idem_journal_close(journal);
        ret_error->code = rc;
        return CLI_JOURNAL_WAITS; /* An outcome of this key may wait there. */
    }
    replay_one_record(journal, store, id, &look);
    idem_journal_close(journal);
    if (look.waiting > 0) {
        *ret_error = look.error;
        return CLI_JOURNAL_WAITS;
    }
    return look.in_use > 0 ? CLI_JOURNAL_IN_USE : CLI_JOURNAL_CLEAR;
}

int cli_journal_refuse(const struct idem_error *error)
{
    cli_say("the outcome of this key is known, and waits in the journal: %s; "
            "nothing was run; see: idem reconcile --list",
            error->text[0] != '\0' ? error->text
                                   : idem_error_text(error->code));
    return cli_exit_of(error->code);
}

/* Stops when the store no longer answers, and before the caller of this command would
 * notice the delay. */
static int look_while_it_lasts(void *ctx, const struct idem_journal_info *info,
                               const struct idem_error *error)
{
    struct look *look = ctx;
    int64_t took_ms = cli_mono_ms() - look->began_ms;

    (void)look_at(look, info, error);
    look->told++;
    return idem_error_kind(error->code) == IDEM_KIND_RETRY ||
           took_ms >= CATCH_UP_LONGEST_MS ||
           (took_ms >= CATCH_UP_MS && look->told >= CATCH_UP_ENTRIES);
}

void cli_journal_catch_up(struct idem_store *store, bool remarks)
{
    struct look look = {
        .remarks = remarks,
        .began_ms = cli_mono_ms(),
    };
    struct idem_journal *journal;
    struct idem_error error;

    if (open_existing(store, /* say= */ false, &journal, &error) == 0 &&
        journal != NULL) {
        (void)idem_journal_catch_up(journal, store, look_while_it_lasts, &look,
                                    NULL);
        idem_journal_close(journal);
    }
}

/* Stops at the first outcome that waits. */
static int find_waiting(void *ctx, const struct idem_journal_info *info,
                        const struct idem_error *error)
{
    struct look *look = ctx;

    if (info->state == IDEM_JOURNAL_WAITING) {
        note_waiting(look, info, error);
    }
    return info->state == IDEM_JOURNAL_WAITING;
}

static void find(struct idem_store *store, const uint8_t *id, struct look *look)
{
    struct idem_journal_filter filter = IDEM_JOURNAL_FILTER_INIT;
    struct idem_journal *journal;
    struct idem_error error;

    if (open_existing(store, /* say= */ false, &journal, &error) == 0 &&
        journal != NULL) {
        filter.store_url = idem_store_url(store);
        filter.id = id;
        (void)idem_journal_list(journal, &filter, find_waiting, look, NULL);
        idem_journal_close(journal);
    }
}

enum idem_status cli_journal_peek(struct idem_store *store,
                                  struct idem_slice scope,
                                  struct idem_slice key)
{
    struct look look = {.waiting = 0};
    uint8_t id[IDEM_ID_LEN];

    if (idem_id(scope, key, id) == 0) {
        find(store, id, &look);
    }
    return look.status;
}

void cli_journal_note(struct idem_store *store)
{
    struct look look = {.waiting = 0};

    find(store, /* id= */ NULL, &look);
    if (look.waiting > 0) {
        cli_say("outcomes wait in the journal for this store; record them: "
                "idem reconcile");
    }
}

/* A directory that was changed a moment ago may change again without a change of its
 * timestamp. So may one whose timestamp is ahead of this host's clock. */
static bool is_settled(const struct stat *directory)
{
    return directory->st_ctim.tv_sec + EMPTY_SETTLED_S < time(NULL);
}

bool cli_journal_is_empty(struct cli_journal_view *view)
{
    struct idem_journal_usage usage = IDEM_JOURNAL_USAGE_INIT;
    char *directory = directory_path();
    struct stat now;
    /* It reads the timestamp before the entries: if an entry arrives in between, the
     * next call sees another timestamp, and reads the entries again. */
    bool settled =
        directory != NULL && lstat(directory, &now) == 0 && is_settled(&now);

    free(directory);
    if (!settled) {
        return false;
    }
    if (now.st_dev != view->device || now.st_ino != view->inode ||
        now.st_ctim.tv_sec != view->changed.tv_sec ||
        now.st_ctim.tv_nsec != view->changed.tv_nsec) {
        view->device = now.st_dev;
        view->inode = now.st_ino;
        view->changed = now.st_ctim;
        view->empty = cli_journal_read_usage(&usage) && usage.entries == 0;
    }
    return view->empty;
}

/* ---- An outcome on its way to the store -------------------------------- */

static void name_path(struct cli_net *net, const char *directory)
{
    if (asprintf(&net->path, "%s/%s", directory,
                 idem_journal_entry_name(net->entry)) < 0) {
        net->path = NULL;
    }
}

bool cli_journal_read_usage(struct idem_journal_usage *ret_usage)
{
    struct idem_journal *journal;
    struct idem_error error;
    char *directory;
    bool known = false;

    if (cli_journal_open(/* make= */ false, &journal, &directory, &error) ==
        0) {
        known = idem_journal_read_usage(journal, ret_usage, &error) == 0;
        idem_journal_close(journal);
    }
    free(directory);
    return known;
}

static void keep(struct cli_net *net)
{
    char *directory;
    int rc;

    rc = cli_journal_open(/* make= */ true, &net->journal, &directory,
                          &net->error);
    if (rc != 0) {
        goto done;
    }
    rc = idem_journal_put(net->journal, net->store, net->attempt, net->outcome,
                          &net->entry, &net->error);
    if (rc != 0) {
        goto done;
    }
    name_path(net, directory);

done:
    net->error.code = rc;
    free(directory);
}

void cli_net_init(struct cli_net *net, enum cli_journal_rule rule,
                  struct idem_store *store, struct idem_attempt *attempt,
                  const struct idem_outcome *outcome)
{
    bool remote = idem_store_is_remote(store);

    memset(net, 0, sizeof(*net));
    net->store = store;
    net->attempt = attempt;
    net->outcome = outcome;
    net->rule = rule;
    if (idem_store_url(store) == NULL) {
        net->rule = CLI_JOURNAL_OFF;
    } else if (rule == CLI_JOURNAL_AUTO) {
        net->rule = remote ? CLI_JOURNAL_ALWAYS : CLI_JOURNAL_ON_FAILURE;
    }
    if (net->rule == CLI_JOURNAL_ALWAYS) {
        keep(net);
    }
}

/* A LOST attempt has no outcome to keep. A journal that has failed is not tried again. */
void cli_net_answered(struct cli_net *net, int code)
{
    if (code != 0 && code != IDEM_ELOST && net->entry == NULL &&
        net->error.code == 0 && net->rule != CLI_JOURNAL_OFF) {
        keep(net);
    }
}

bool cli_net_settle(struct cli_net *net, int code)
{
    bool waits = net->entry != NULL && code != 0 && code != IDEM_ELOST;

    if (waits) {
        idem_journal_leave(net->entry);
    } else {
        idem_journal_remove(net->entry);
    }
    net->entry = NULL;
    return waits;
}

void cli_net_explain(const struct cli_net *net, struct idem_error *error)
{
    size_t len = strlen(error->text);

    if (net->error.code != 0) {
        (void)snprintf(error->text + len, sizeof(error->text) - len,
                       "; the journal could not keep it either: %s",
                       net->error.text);
    }
}

void cli_net_finish(struct cli_net *net)
{
    idem_journal_leave(net->entry);
    idem_journal_close(net->journal);
    free(net->path);
    memset(net, 0, sizeof(*net));
}
