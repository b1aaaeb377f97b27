/* The entries of a journal: told to their stores, shown, deleted. */
#include "base/crash.h"
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"
#include "core/outcome.h"
#include "core/slice.h"
#include "core/token.h"
#include "journal/journal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

/* One look around: a replay where there is a store, else a list. */
struct round {
    struct idem_journal *journal;
    struct idem_store *store;
    struct idem_slice store_url; /* Only for it; empty: for all. */
    const uint8_t *id;           /* Only about it; NULL: about all. */
    idem_journal_fn *each;
    void *ctx;

    const char *name; /* Only the file that is called so; NULL: all. */
    char record[IDEM__ENTRY_PREFIX_LEN + 1]; /* Names begin with it. */
    uint64_t
        place; /* Of the files that are due a walk looks at those from here ... */
    bool again; /* ... or at those before it. */
    uint64_t seen;
    bool stopped; /* By @each. */
    const char
        *at_hand; /* A file of the record at hand; before it lie so many. */
    unsigned before;
};

/* ---- One entry ---- */

/* When the work ended, as struct idem_outcome has it; 0: the wall clock was set
 * since, and nobody knows. The store lets no end be before its beginning. */
static int64_t ended_boot_ms(const struct idem_journal_info *entry)
{
    struct idem_clock_reading now;

    return entry->written_ms == 0 ||
                   idem__host_clock(/* ctx= */ NULL, &now) != 0 ||
                   now.wall_ms < entry->written_ms
               ? 0
               : now.boot_ms - (now.wall_ms - entry->written_ms);
}

/* Ends the attempt that the entry is about. */
static int tell(struct idem_store *store, const struct idem_journal_info *entry,
                struct idem_error *error)
{
    struct idem_attempt *attempt;
    struct idem__token token = {.scope = entry->scope,
                                .key = entry->key,
                                .fence = entry->fence};
    char text[IDEM_TOKEN_MAX];
    int rc;

    memcpy(token.nonce, entry->nonce, sizeof(token.nonce));
    rc = idem__token_write(&token, text);
    if (rc != 0) {
        return idem__error_plain(error, rc);
    }
    rc = idem_attempt_from_token(store, text, &attempt, error);
    if (rc == 0) {
        rc = idem_end(attempt, &entry->outcome, error);
        idem_attempt_destroy(attempt);
    }
    return rc;
}

/* Keeps a file out of every later replay, for a person to see. Where that fails @error
 * says so instead of what is wrong with the entry, which the next replay finds again. */
static void set_aside(const struct idem__journal_file *file, const char *ending,
                      struct idem_error *error)
{
    char to[IDEM__JOURNAL_NAME_MAX + 1];

    (void)snprintf(to, sizeof(to), "%.*s.%llx.%s",
                   (int)strcspn(file->name, "."), file->name,
                   (unsigned long long)file->inode, ending);
    if (renameat(file->journal->fd, file->name, file->journal->fd, to) != 0) {
        (void)idem__journal_errno(error, "set aside", file->name);
    }
}

static enum idem_journal_state replay(struct idem_store *store,
                                      const struct idem__journal_file *file,
                                      const struct idem_journal_info *entry,
                                      struct idem_error *error)
{
    IDEM__CRASH_POINT("journal/replay/held");
    switch (tell(store, entry, error)) {
    case IDEM_OK:
        IDEM__CRASH_POINT("journal/replay/told");
        (void)unlinkat(file->journal->fd, file->name, 0);
        IDEM__CRASH_POINT("journal/replay/removed");
        return IDEM_JOURNAL_RECORDED;
    case IDEM_ELOST:
        set_aside(file, "lost", error);
        return IDEM_JOURNAL_LOST;
    default:
        return IDEM_JOURNAL_WAITING;
    }
}

/* Reads the entry in @file; the caller frees the bytes. An entry that contradicts the
 * name of its file is damaged. */
static int read_entry(const struct idem__journal_file *file,
                      uint8_t **ret_bytes, struct idem_journal_info *entry,
                      struct idem_error *error)
{
    char name[IDEM__ENTRY_PREFIX_LEN + 1];
    int rc = idem__journal_read(file, ret_bytes, error);

    if (rc != 0) {
        return rc;
    }
    rc = idem__entry_decode(idem_bytes(*ret_bytes, (size_t)file->len), entry,
                            error);
    if (rc != 0) {
        return rc;
    }
    rc = idem__entry_name(entry->store_url, entry->id,
                          (int)entry->outcome.status, name, error);
    if (rc != 0) {
        return rc;
    }
    return strncmp(name, file->name, IDEM__ENTRY_PREFIX_LEN) == 0
               ? 0
               : idem__entry_damaged(error,
                                     "its name does not match its content");
}

/* The hex digits of the name say so too, but they are only some. */
static bool is_wanted(const struct round *round,
                      const struct idem_journal_info *entry)
{
    return (round->store_url.len == 0 ||
            idem__slice_equal(round->store_url, entry->store_url)) &&
           (round->id == NULL ||
            memcmp(round->id, entry->id, IDEM_ID_LEN) == 0);
}

/* Looks at one file. Not 0: @each stopped. */
static int look_at(struct round *round, const char *name)
{
    bool replays = round->store != NULL;
    enum idem_journal_state called = idem__journal_state_of(name);
    struct idem__journal_file file = {round->journal, name, .fd = -1};
    struct idem_journal_info info = {.name = name};
    struct idem_error error = {0};
    uint8_t *bytes = NULL;
    int rc = idem__journal_hold(&file, replays ? LOCK_EX : LOCK_SH,
                                /* make= */ false, &error);

    if (rc == IDEM_ENOTFOUND) {
        return 0;
    }
    info.len = file.len;
    /* Nothing was put: the writer was killed, or has not locked its new file yet and
     * will find that it is gone and take another. */
    if (rc == 0 && file.len == 0 && called == IDEM_JOURNAL_WAITING) {
        if (replays) {
            (void)unlinkat(round->journal->fd, name, 0);
        }
        goto done;
    }
    if (rc == 0) {
        rc = read_entry(&file, &bytes, &info, &error);
    }
    if (rc == 0 && !is_wanted(round, &info)) {
        goto done;
    }
    /* One that could not be read now is what its name says. */
    info.state = rc == IDEM__JOURNAL_BUSY ? IDEM_JOURNAL_IN_USE
                 : rc == IDEM_ECONFIG     ? IDEM_JOURNAL_NEWER
                 : rc == IDEM_ECORRUPT    ? IDEM_JOURNAL_DAMAGED
                                          : called;
    if (replays && rc == IDEM_ECORRUPT && file.fd >= 0) {
        set_aside(&file, "bad", &error);
    }
    if (replays && rc == 0) {
        info.outcome.ended_boot_ms = ended_boot_ms(&info);
        info.state = replay(round->store, &file, &info, &error);
    }
    rc = round->each == NULL ? 0 : round->each(round->ctx, &info, &error);

done:
    idem__free(bytes);
    idem__journal_release(&file);
    return rc;
}

/* ---- All of them ---- */

/* Calls @each for the files about one record, whose names begin with @record, until
 * it answers not 0: what says most comes first, which is also the order of the numbers of
 * the statuses. Their names are tried, so this takes the same time however much else is
 * there. */
static int each_of_record(struct round *round, const char *record,
                          int (*each)(struct round *round, const char *name))
{
    char name[IDEM__JOURNAL_NAME_MAX + 1];
    int rc = 0;
    int status;

    for (status = IDEM_STATUS_COMPLETED; status <= IDEM_STATUS_RETRY;
         status++) {
        bool there = idem__is_end((enum idem_status)status);
        int n;

        for (n = 0; there || (n > 0 && n < IDEM__JOURNAL_LIKELY); n++) {
            (void)snprintf(name, sizeof(name), "%.*s%d-%d.idj",
                           IDEM__ENTRY_RECORD_LEN, record, status, n);
            there = faccessat(round->journal->fd, name, F_OK,
                              AT_SYMLINK_NOFOLLOW) == 0;
            rc = there ? each(round, name) : 0;
            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

/* Not 0: it is the file at hand. */
static int count_before(struct round *round, const char *name)
{
    bool reached = strcmp(name, round->at_hand) == 0;

    round->before += !reached;
    return reached;
}

/* All about a record are told together, with the first of them. One that has so high a
 * number that it is not found among them is told after them. */
static int tell_record(struct round *round, const char *name)
{
    bool found;
    int rc;

    round->at_hand = name;
    round->before = 0;
    found = each_of_record(round, name, count_before) != 0;
    if (found && round->before > 0) {
        return 0;
    }
    rc = each_of_record(round, name, look_at);
    return rc == 0 && !found ? look_at(round, name) : rc;
}

/* Whether the name says that the file may be of interest. */
static bool is_due(const struct round *round, const char *name)
{
    enum idem_journal_state state = idem__journal_state_of(name);

    if (round->store == NULL && round->record[0] == '\0') {
        return true;
    }
    return (round->store == NULL ? state != 0
                                 : state == IDEM_JOURNAL_WAITING) &&
           strncmp(name, round->record, strlen(round->record)) == 0;
}

static int visit(void *ctx, const char *name)
{
    struct round *round = ctx;

    if (is_due(round, name) && (round->seen++ < round->place) == round->again) {
        round->stopped = (round->store != NULL ? tell_record(round, name)
                                               : look_at(round, name)) != 0;
    }
    return round->stopped;
}

/* A walk ends with an error, or because @each stopped it, which is none. */
static int walk(struct round *round, struct idem_error *error)
{
    int rc;

    round->seen = 0;
    rc = idem__journal_walk(round->journal, visit, round, error);
    return round->stopped ? 0 : rc;
}

/* A name without the directories before it. */
static const char *base_of(const char *name)
{
    const char *slash = strrchr(name, '/');

    return slash != NULL ? slash + 1 : name;
}

/* The choice of @filter, which may be NULL. */
static int choose(struct round *round, const struct idem_journal_filter *filter,
                  struct idem_error *error)
{
    static const struct idem_journal_filter all = IDEM_JOURNAL_FILTER_INIT;
    static const uint8_t any[IDEM_ID_LEN];
    const char *url;
    int rc;

    filter = filter == NULL ? &all : filter;
    if (filter->size != sizeof(*filter) ||
        (filter->id != NULL && filter->store_url == NULL &&
         round->store == NULL)) {
        return idem__error(error, IDEM_EINVALID,
                           "filter: begin with IDEM_JOURNAL_FILTER_INIT, and "
                           "name the store_url of an id");
    }
    round->id = filter->id;
    round->name = filter->name != NULL ? base_of(filter->name) : NULL;
    url = filter->store_url == NULL && round->store != NULL
              ? idem_store_url(round->store)
              : filter->store_url;
    if (url == NULL) {
        return 0;
    }
    round->store_url = idem_str(url);
    rc = idem__entry_name(round->store_url, round->id != NULL ? round->id : any,
                          0, round->record, error);
    round->record[round->id != NULL ? IDEM__ENTRY_RECORD_LEN
                                    : IDEM__ENTRY_STORE_LEN] = '\0';
    return rc;
}

/* Looks at what @filter chooses. */
static int look(struct round *round, const struct idem_journal_filter *filter,
                struct idem_error *error)
{
    int rc = choose(round, filter, error);

    /* Nothing can be meant for a store without a URL. */
    if (rc != 0 || (round->store != NULL && round->store_url.len == 0)) {
        return rc;
    }
    if (round->name == NULL && round->id == NULL) {
        return walk(round, error);
    }
    if (round->name == NULL) {
        (void)each_of_record(round, round->record, look_at);
    } else if (is_due(round, round->name)) {
        (void)look_at(round, round->name);
    }
    return 0;
}

int idem_journal_replay(struct idem_journal *journal, struct idem_store *store,
                        const struct idem_journal_filter *filter,
                        idem_journal_fn *each, void *ctx,
                        struct idem_error *ret_error)
{
    struct round round = {journal, store, .each = each, .ctx = ctx};

    return look(&round, filter, ret_error);
}

int idem_journal_list(struct idem_journal *journal,
                      const struct idem_journal_filter *filter,
                      idem_journal_fn *each, void *ctx,
                      struct idem_error *ret_error)
{
    struct round round = {journal, .each = each, .ctx = ctx};

    return look(&round, filter, ret_error);
}

int idem_journal_catch_up(struct idem_journal *journal,
                          struct idem_store *store, idem_journal_fn *each,
                          void *ctx, struct idem_error *ret_error)
{
    struct round round = {journal, store, .each = each, .ctx = ctx};
    int rc = 0;
    int turn;

    /* A slice begins at a place by chance, and goes round to it: entries that cannot
     * be told do not hold up those that can, however short the slices. Each order of
     * magnitude is as likely as any other, for a place is found by reading the names
     * before it; where there are not so many, the slice begins with the first. */
    if (idem__random(&round.place, sizeof(round.place)) != 0) {
        return idem__error_plain(ret_error, IDEM_EUNAVAILABLE);
    }
    round.place >>= 46 + round.place % 18;
    /* One process at a time. At an open of its own: a lock of one descriptor
     * would let threads in together. */
    turn = openat(journal->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (turn >= 0 && flock(turn, LOCK_EX | LOCK_NB) == 0) {
        rc = look(&round, /* filter= */ NULL, ret_error);
        round.again = true;
        if (rc == 0 && !round.stopped && round.seen > 0) {
            rc = walk(&round, ret_error);
        }
    }
    if (turn >= 0) {
        (void)close(turn);
    }
    return rc;
}

int idem_journal_drop(struct idem_journal *journal, const char *name,
                      struct idem_error *ret_error)
{
    struct idem__journal_file file = {journal, base_of(name), .fd = -1};
    int rc = idem__journal_hold(&file, LOCK_EX, /* make= */ false, ret_error);

    if (rc == IDEM__JOURNAL_BUSY) {
        return idem__error(ret_error, IDEM_EUNAVAILABLE,
                           "another process is using the entry %.80s",
                           file.name);
    }
    if (rc == IDEM_ENOTFOUND || rc == IDEM_ECORRUPT) {
        return idem__error(ret_error, IDEM_ENOTFOUND,
                           "the journal has no entry %.80s", name);
    }
    if (rc == 0 && unlinkat(journal->fd, file.name, 0) != 0) {
        rc = idem__journal_errno(ret_error, "delete", file.name);
    }
    idem__journal_release(&file);
    return rc;
}
