/* Replays the entries of a journal into their stores, lists them and deletes them. */
#include "base/crash.h"
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"
#include "core/outcome.h"
#include "core/slice.h"
#include "core/token.h"
#include "journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

/* One pass over the entries: a replay if there is a store, else a list. */
struct round {
    struct idem_journal *journal;
    struct idem_store *store;
    struct idem_slice store_url; /* Only entries for it; empty: all. */
    idem_journal_fn *each;
    void *ctx;

    char prefix[IDEM__ENTRY_PREFIX_LEN + 1]; /* Only files whose names begin
                                                so. */
    /* A walk counts the files that are due. In its first round it takes those from
     * number @place on; in its second (@again), those before it. */
    uint64_t place;
    bool again;
    uint64_t seen;
    bool ahead; /* The walk reaches this file later. */
};

/* ---- One entry ---- */

/* Returns when the work ended, by the boot clock as in struct idem_outcome. Returns 0,
 * "when the store records it", if the clocks cannot be read or the wall clock was set
 * back since then. If it was set forward, the result is too early, but the store
 * records no end before its beginning. */
static int64_t ended_boot_ms(const struct idem_journal_info *entry)
{
    struct idem_clock_reading now;

    return entry->written_ms == 0 ||
                   idem__host_clock(/* ctx= */ NULL, &now) != 0 ||
                   now.wall_ms < entry->written_ms
               ? 0
               : now.boot_ms - (now.wall_ms - entry->written_ms);
}

/* Ends the attempt of the entry in the store. */
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

/* Renames a file so that no later replay takes it, for a person to see. If that fails,
 * @error gets this reason: the next replay finds the fault of the entry again
 * anyway. */
static void set_aside(const struct idem__journal_file *file, const char *ending,
                      struct idem_error *error)
{
    char to[IDEM__ENTRY_NAME_MAX + 1];

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
        /* Another attempt or a person owns the record: its outcome stands. */
        set_aside(file, "lost", error);
        return IDEM_JOURNAL_LOST;
    default:
        /* The store may record it later, so the entry stays. */
        return IDEM_JOURNAL_WAITING;
    }
}

/* Replays or shows one file. A file that stays is not reported ahead of the walk,
 * because the walk reports it later. Returns non-zero if @each stopped. */
static int look_at(struct round *round, const char *name)
{
    bool replays = round->store != NULL;
    struct idem__journal_file file = {round->journal, name, .fd = -1};
    struct idem_journal_info info = {.name = name,
                                     .state = idem__journal_state_of(name)};
    struct idem_error error = {0};
    uint8_t *bytes = NULL;
    int rc = idem__journal_hold(&file, replays ? LOCK_EX : LOCK_SH,
                                /* make= */ false, &error);

    if (rc == IDEM_ENOTFOUND) {
        return 0;
    }
    info.len = file.len;
    /* An empty file has no outcome: its writer was killed, or has created it and not
     * locked it yet. In the second case the writer finds after its lock that the file
     * is gone, and takes another. */
    if (rc == 0 && file.len == 0 && info.state == IDEM_JOURNAL_WAITING) {
        if (replays) {
            (void)unlinkat(round->journal->fd, name, 0);
        }
        goto done;
    }
    if (rc == 0) {
        rc = idem__journal_read(&file, &bytes, &error);
    }
    if (rc == 0) {
        rc = idem__entry_decode(idem_bytes(bytes, (size_t)file.len), &info,
                                &error);
    }
    /* Compare the whole URL, because the digest in the name has only 32 bits. */
    if (rc == 0 && round->store_url.len > 0 &&
        !idem__slice_equal(round->store_url, info.store_url)) {
        goto done;
    }
    /* If the file could not be read this time, the ending of its name gives its
     * state. */
    info.state = rc == IDEM__JOURNAL_BUSY ? IDEM_JOURNAL_IN_USE
                 : rc == IDEM_ECONFIG     ? IDEM_JOURNAL_NEWER
                 : rc == IDEM_ECORRUPT    ? IDEM_JOURNAL_DAMAGED
                                          : info.state;
    if (replays && rc == IDEM_ECORRUPT && file.fd >= 0) {
        set_aside(&file, "bad", &error);
    }
    if (replays && rc == 0) {
        info.outcome.ended_boot_ms = ended_boot_ms(&info);
        info.state = replay(round->store, &file, &info, &error);
    }
    rc = round->each == NULL ||
                 (round->ahead && info.state < IDEM_JOURNAL_RECORDED)
             ? 0
             : round->each(round->ctx, &info, &error);

done:
    idem__free(bytes);
    idem__journal_release(&file);
    return rc;
}

/* ---- All of them ---- */

/* Returns the status of the outcome in the file @name, by which entries are ordered
 * before they are locked and verified; 0 if the file does not exist. A file without a
 * valid status comes last, as RETRY. */
static uint8_t peek(const struct round *round, const char *name)
{
    int fd = openat(round->journal->fd, name,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    uint8_t status = 0;

    if (fd < 0 && errno == ENOENT) {
        return 0;
    }
    if (fd >= 0) {
        (void)!pread(fd, &status, 1, IDEM__ENTRY_AT_STATUS);
        (void)close(fd);
    }
    return idem__is_end((enum idem_status)status) ? status : IDEM_STATUS_RETRY;
}

/* Takes the entries of one record, whose names begin with @prefix, if their status is
 * below @status. The outcome that says most has the lowest status, and comes first.
 * This tries the possible names, so it takes the same time however many other entries
 * there are. Returns non-zero if @each stopped. */
static int look_at_record(struct round *round, const char *prefix, int status)
{
    uint8_t statuses[IDEM__ENTRY_NUMBERS];
    char name[IDEM__ENTRY_NAME_MAX + 1];
    int len = 0;
    int next;
    int n;

    memcpy(name, prefix, IDEM__ENTRY_PREFIX_LEN);
    do {
        idem__entry_number(name, len);
        statuses[len] = peek(round, name);
    } while (++len < IDEM__ENTRY_NUMBERS &&
             (len < IDEM__ENTRY_LIKELY || statuses[len - 1] != 0));
    for (next = IDEM_STATUS_COMPLETED; next < status; next++) {
        for (n = 0; n < len; n++) {
            idem__entry_number(name, n);
            if (statuses[n] == next && look_at(round, name) != 0) {
                return 1;
            }
        }
    }
    return 0;
}

/* True if the pass takes the file with this name: a replay takes waiting entries, a
 * list takes entries in any state, and a list for all stores also takes files that are
 * not entries. */
static bool is_due(const struct round *round, const char *name)
{
    enum idem_journal_state state = idem__journal_state_of(name);

    return strncmp(name, round->prefix, strlen(round->prefix)) == 0 &&
           (round->store != NULL ? state == IDEM_JOURNAL_WAITING
                                 : state != 0 || round->prefix[0] == '\0');
}

/* Takes one file of a walk. Before it, a replay records the outcomes of the same record
 * that say more. Returns non-zero if @each stopped. */
static int visit(void *ctx, const char *name)
{
    struct round *round = ctx;
    int stopped = 0;

    if (!is_due(round, name) ||
        (round->seen++ < round->place) != round->again) {
        return 0;
    }
    if (round->store != NULL) {
        round->ahead = true;
        stopped = look_at_record(round, name, peek(round, name));
        round->ahead = false;
    }
    return stopped != 0 || look_at(round, name) != 0;
}

/* Walks over all files. That @each stopped the walk is not an error. */
static int walk(struct round *round, struct idem_error *error)
{
    int rc;

    do {
        round->seen = 0;
        rc = idem__journal_walk(round->journal, visit, round, error);
        round->again = !round->again;
    } while (rc == 0 && round->again && round->place > 0 && round->seen > 0);
    return rc < 0 ? rc : 0;
}

/* Returns the part of @name after its directories. */
static const char *base_of(const char *name)
{
    const char *slash = strrchr(name, '/');

    return slash != NULL ? slash + 1 : name;
}

/* Takes the entries that @filter selects; NULL selects all. */
static int look(struct round *round, const struct idem_journal_filter *filter,
                struct idem_error *error)
{
    static const struct idem_journal_filter all = IDEM_JOURNAL_FILTER_INIT;
    const char *url;
    int rc = 0;

    filter = filter == NULL ? &all : filter;
    if (filter->size != sizeof(*filter) ||
        (filter->id != NULL && filter->store_url == NULL &&
         round->store == NULL)) {
        return idem__error(error, IDEM_EINVALID,
                           "filter: begin with IDEM_JOURNAL_FILTER_INIT, and "
                           "name the store_url of an id");
    }
    url = filter->store_url == NULL && round->store != NULL
              ? idem_store_url(round->store)
              : filter->store_url;
    if (url != NULL) {
        round->store_url = idem_str(url);
        rc = idem__entry_prefix(round->store_url, filter->id, round->prefix,
                                error);
    } else if (round->store != NULL) {
        return 0; /* No entry is for a store without a URL. */
    }
    if (rc == 0 && filter->name != NULL) {
        (void)visit(round, base_of(filter->name));
    } else if (rc == 0 && filter->id != NULL) {
        (void)look_at_record(round, round->prefix, IDEM_STATUS_RETRY + 1);
    } else if (rc == 0) {
        rc = walk(round, error);
    }
    return rc;
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

    /* A slice begins at a random place and goes round to it, so that entries that the
     * store cannot record do not hold up others, however short the slices are. All
     * orders of magnitude are equally likely, because finding a place means reading all
     * names before it; if the place is beyond the last file, the slice begins with the
     * first. */
    if (idem__random(&round.place, sizeof(round.place)) == 0) {
        round.place >>= 46 + round.place % 18;
    }
    /* One slice at a time. The lock is on a new open of the directory, because flock()
     * on a shared descriptor would let two threads in together. */
    turn = openat(journal->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (turn >= 0 && flock(turn, LOCK_EX | LOCK_NB) == 0) {
        rc = look(&round, /* filter= */ NULL, ret_error);
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
