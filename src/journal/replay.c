/* The entries of a journal: told to their stores, shown, deleted. */
#include "base/bytes.h"
#include "base/crash.h"
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"
#include "core/token.h"
#include "journal/directory.h"

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
    char record[IDEM__ENTRY_RECORD_LEN + 1]; /* Names begin with it. */
    uint64_t seen;                           /* Files of entries that wait. */
    uint64_t from; /* Of these a replay looks at the ones from here ... */
    uint64_t to;   /* ... to before here. */
    bool stopped;  /* By @each. */
    const char *at_hand;
    char first[IDEM__JOURNAL_NAME_MAX + 1]; /* Of the record at hand. */
};

/* ---- One entry ---- */

/* When the work ended, as struct idem_outcome has it; 0: the wall clock was set
 * since, and nobody knows. The store lets no end be before its beginning. */
static int64_t ended_boot_ms(const struct idem__entry *entry)
{
    struct idem_clock_reading reading = {0};
    struct idem_host host = {.ctx = NULL};

    idem__host_default(&host);
    if (entry->written_ms == 0 || host.clock(host.ctx, &reading) != 0 ||
        reading.wall_ms < entry->written_ms) {
        return 0;
    }
    return reading.boot_ms - (reading.wall_ms - entry->written_ms);
}

/* Ends the attempt that the entry is about. */
static int tell(struct idem_store *store, const struct idem__entry *entry,
                struct idem_error *error)
{
    struct idem_outcome outcome = entry->outcome;
    struct idem_attempt *attempt;
    struct idem__token token;
    char text[IDEM_TOKEN_MAX];
    int rc;

    token.scope = entry->scope;
    token.key = entry->key;
    memcpy(token.nonce, entry->nonce, sizeof(token.nonce));
    token.fence = entry->fence;
    rc = idem__token_write(&token, text);
    if (rc != 0) {
        return idem__error_plain(error, rc);
    }
    rc = idem_attempt_from_token(store, text, &attempt, error);
    if (rc == 0) {
        outcome.ended_boot_ms = ended_boot_ms(entry);
        rc = idem_end(attempt, &outcome, error);
        idem_attempt_destroy(attempt);
    }
    return rc;
}

/* Keeps a file out of every later replay, for a person to see. */
static void set_aside(const struct round *round, const char *name,
                      const struct idem__journal_file *file, const char *ending)
{
    char to[IDEM__JOURNAL_NAME_MAX + 1];

    (void)snprintf(to, sizeof(to), "%.*s.%llx.%s", (int)strcspn(name, "."),
                   name, (unsigned long long)file->inode, ending);
    (void)renameat(round->journal->fd, name, round->journal->fd, to);
}

static enum idem_journal_state replay(const struct round *round,
                                      const char *name,
                                      const struct idem__journal_file *file,
                                      const struct idem__entry *entry,
                                      struct idem_error *error)
{
    IDEM__CRASH_POINT("journal/replay/held");
    switch (tell(round->store, entry, error)) {
    case IDEM_OK:
        IDEM__CRASH_POINT("journal/replay/told");
        (void)unlinkat(round->journal->fd, name, 0);
        IDEM__CRASH_POINT("journal/replay/removed");
        return IDEM_JOURNAL_RECORDED;
    case IDEM_ELOST:
        set_aside(round, name, file, "lost");
        return IDEM_JOURNAL_LOST;
    default:
        return IDEM_JOURNAL_WAITING;
    }
}

/* A file says what its name says, or it is not believed. */
static int decode(const char *name, struct idem_slice bytes,
                  struct idem__entry *entry, struct idem_error *error)
{
    char record[IDEM__ENTRY_RECORD_LEN + 1];
    int rc = idem__entry_decode(bytes, entry, error);

    if (rc == 0) {
        rc = idem__entry_record_name(entry->store_url, entry->id, record);
    }
    if (rc == 0 &&
        (memcmp(record, name, IDEM__ENTRY_RECORD_LEN) != 0 ||
         name[IDEM__ENTRY_RECORD_LEN] != '0' + (char)entry->outcome.status)) {
        rc =
            idem__error(error, IDEM_ECORRUPT,
                        "the entry cannot be trusted: its name is not its own");
    }
    return rc;
}

/* The hex digits of the name say so too, but they are only some. */
static bool is_wanted(const struct round *round,
                      const struct idem__entry *entry)
{
    const struct idem_slice *url = &round->store_url;

    return (url->len == 0 ||
            (url->len == entry->store_url.len &&
             memcmp(url->base, entry->store_url.base, url->len) == 0)) &&
           (round->id == NULL ||
            memcmp(round->id, entry->id, IDEM_ID_LEN) == 0);
}

static int report(const struct round *round, struct idem_journal_info *info,
                  const struct idem__entry *entry,
                  const struct idem_error *error)
{
    if (round->each == NULL) {
        return 0;
    }
    info->store_url = entry->store_url;
    info->scope = entry->scope;
    info->key = entry->key;
    memcpy(info->id, entry->id, sizeof(info->id));
    memcpy(info->nonce, entry->nonce, sizeof(info->nonce));
    info->fence = entry->fence;
    info->outcome = entry->outcome;
    info->written_ms = entry->written_ms;
    return round->each(round->ctx, info, error);
}

/* @file is held, and closed here. */
static int look_into(const struct round *round,
                     const struct idem__journal_file *file,
                     struct idem_journal_info *info)
{
    enum idem__journal_kind kind = idem__journal_kind_of(info->name);
    struct idem__entry entry = {.fence = 0};
    struct idem_error error = {0};
    uint8_t *bytes = NULL;
    int rc = idem__journal_read(file, &bytes, &error);

    info->len = file->len;
    if (rc == 0) {
        rc = decode(info->name, idem_bytes(bytes, (size_t)file->len), &entry,
                    &error);
    }
    if (rc == 0 && !is_wanted(round, &entry)) {
        goto done;
    }
    if (rc == IDEM_ECONFIG) {
        info->state = IDEM_JOURNAL_NEWER;
    } else if (rc == IDEM_ECORRUPT || kind == IDEM__JOURNAL_BAD) {
        info->state = IDEM_JOURNAL_DAMAGED;
    } else if (kind == IDEM__JOURNAL_LOST) {
        info->state = IDEM_JOURNAL_LOST;
    } else {
        info->state = IDEM_JOURNAL_WAITING; /* Or it could not be read now. */
    }
    if (round->store != NULL && info->state == IDEM_JOURNAL_DAMAGED) {
        set_aside(round, info->name, file, "bad");
    }
    if (round->store != NULL && rc == 0) {
        info->state = replay(round, info->name, file, &entry, &error);
    }
    rc = report(round, info, &entry, &error);

done:
    idem__free(bytes);
    (void)close(file->fd);
    return rc;
}

/* Not 0: @each stopped. */
static int look_at(struct round *round, const char *name)
{
    struct idem_journal_info info = {.name = name};
    struct idem__entry none = {.fence = 0};
    struct idem__journal_file file;
    struct idem_error error = {0};
    enum idem__journal_hold hold = IDEM__JOURNAL_ODD;

    if (idem__journal_kind_of(name) != IDEM__JOURNAL_FOREIGN) {
        hold = idem__journal_hold(round->journal, name,
                                  /* alone= */ round->store != NULL, &file,
                                  &error);
    }
    switch (hold) {
    case IDEM__JOURNAL_HELD:
        return look_into(round, &file, &info);
    case IDEM__JOURNAL_GONE:
        return 0;
    case IDEM__JOURNAL_BUSY:
        info.state = IDEM_JOURNAL_IN_USE;
        break;
    case IDEM__JOURNAL_ERROR:
        info.state = IDEM_JOURNAL_WAITING;
        break;
    case IDEM__JOURNAL_ODD:
        info.state = IDEM_JOURNAL_DAMAGED;
        (void)idem__error(&error, IDEM_ECORRUPT, "not an entry of a journal");
        break;
    }
    return report(round, &info, &none, &error);
}

/* ---- All of them ---- */

/* Of one record what says most is told first. */
static const char statuses[] = {
    '0' + IDEM_STATUS_COMPLETED, '0' + IDEM_STATUS_FAILED,
    '0' + IDEM_STATUS_UNKNOWN,   '0' + IDEM_STATUS_RELEASED,
    '0' + IDEM_STATUS_RETRY,
};

/* Calls @each for the files about one record, whose names begin with @record, until
 * it answers not 0. Their names are tried, so this takes the same time however much
 * else is there. */
static int each_of_record(struct round *round, const char *record,
                          int (*each)(struct round *round, const char *name))
{
    char name[IDEM__JOURNAL_NAME_MAX + 1];
    int rc = 0;
    size_t s;

    for (s = 0; s < sizeof(statuses); s++) {
        bool there = true;
        int n;

        for (n = 0; n < IDEM__JOURNAL_LIKELY || there; n++) {
            (void)snprintf(name, sizeof(name), "%.*s%c-%d.idj",
                           IDEM__ENTRY_RECORD_LEN, record, statuses[s], n);
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
static int note_first(struct round *round, const char *name)
{
    if (round->first[0] == '\0') {
        (void)strcpy(round->first, name);
    }
    return strcmp(name, round->at_hand) == 0;
}

/* All about a record are told together, with the first that is met. One that has so
 * high a number that it is not found among them is told after them. */
static int tell_record(struct round *round, const char *name)
{
    int rc;

    round->at_hand = name;
    round->first[0] = '\0';
    if (each_of_record(round, name, note_first) != 0) {
        return strcmp(round->first, name) == 0
                   ? each_of_record(round, name, look_at)
                   : 0;
    }
    rc = each_of_record(round, name, look_at);
    return rc != 0 ? rc : look_at(round, name);
}

/* Whether the name says that the file may be of interest. */
static bool is_due(const struct round *round, const char *name)
{
    enum idem__journal_kind kind = idem__journal_kind_of(name);

    if (round->name != NULL && strcmp(round->name, name) != 0) {
        return false;
    }
    if (kind == IDEM__JOURNAL_FOREIGN) {
        return round->store == NULL && round->id == NULL &&
               round->record[0] == '\0';
    }
    return (round->store == NULL || kind == IDEM__JOURNAL_PENDING) &&
           strncmp(name, round->record, strlen(round->record)) == 0 &&
           (round->id == NULL || strtoull(name + IDEM__ENTRY_ID_AT, NULL, 16) ==
                                     idem__get_u64(round->id));
}

static int visit(void *ctx, const char *name)
{
    struct round *round = ctx;
    uint64_t at;

    if (!is_due(round, name)) {
        return 0;
    }
    at = round->seen++;
    if (at < round->from || at >= round->to) {
        return 0;
    }
    round->stopped = round->store != NULL && round->name == NULL
                         ? tell_record(round, name) != 0
                         : look_at(round, name) != 0;
    return round->stopped;
}

/* A walk ends with an error, or because @each stopped it, which is none. */
static int walk(struct round *round, struct idem_error *error)
{
    int rc = idem__journal_walk(round->journal, visit, round, error);

    return round->stopped ? 0 : rc;
}

/* The choice of @filter, which may be NULL; @store_url where it names no store. */
static int choose(struct round *round, const struct idem_journal_filter *filter,
                  const char *store_url, struct idem_error *error)
{
    static const struct idem_journal_filter all = IDEM_JOURNAL_FILTER_INIT;
    static const uint8_t any[IDEM_ID_LEN];
    int rc = idem__journal_check(round->journal, error);
    const char *slash;

    filter = filter == NULL ? &all : filter;
    if (rc == 0 && filter->size != sizeof(*filter)) {
        rc = idem__error(error, IDEM_EINVALID,
                         "filter: begin with IDEM_JOURNAL_FILTER_INIT");
    }
    if (rc != 0) {
        return rc;
    }
    round->id = filter->id;
    round->store_url =
        idem_str(filter->store_url != NULL ? filter->store_url : store_url);
    round->name = filter->name;
    slash = round->name != NULL ? strrchr(round->name, '/') : NULL;
    round->name = slash != NULL ? slash + 1 : round->name;
    round->to = UINT64_MAX;
    if (round->store_url.len > 0) {
        rc = idem__entry_record_name(round->store_url,
                                     round->id != NULL ? round->id : any,
                                     round->record);
        round->record[round->id != NULL ? IDEM__ENTRY_RECORD_LEN
                                        : IDEM__ENTRY_ID_AT] = '\0';
    }
    return rc == 0 ? 0 : idem__error_plain(error, rc);
}

int idem_journal_replay(struct idem_journal *journal, struct idem_store *store,
                        const struct idem_journal_filter *filter,
                        idem_journal_fn *each, void *ctx,
                        struct idem_error *ret_error)
{
    struct round round = {.journal = journal,
                          .store = store,
                          .each = each,
                          .ctx = ctx};
    int rc = choose(&round, filter, idem_store_url(store), ret_error);

    if (rc != 0 || round.store_url.len == 0) {
        return rc; /* Nothing can be meant for a store without a URL. */
    }
    if (round.id != NULL && round.name == NULL) {
        (void)each_of_record(&round, round.record, look_at);
        return 0;
    }
    return walk(&round, ret_error);
}

int idem_journal_list(struct idem_journal *journal,
                      const struct idem_journal_filter *filter,
                      idem_journal_fn *each, void *ctx,
                      struct idem_error *ret_error)
{
    struct round round = {.journal = journal, .each = each, .ctx = ctx};
    int rc = choose(&round, filter, NULL, ret_error);

    return rc == 0 ? walk(&round, ret_error) : rc;
}

static int walk_between(struct round *round, uint64_t from, uint64_t to,
                        struct idem_error *error)
{
    round->seen = 0;
    round->from = from;
    round->to = to;
    return walk(round, error);
}

/* One slice in 8 begins at a place by chance, and goes round to it: entries that
 * cannot be told do not hold up those that can, however short the slices. The others
 * begin with what is met first, for a place is found by reading all the names. */
static int catch_up(struct round *round, struct idem_error *error)
{
    struct idem_host host = {.ctx = NULL};
    uint64_t place;
    int rc;

    idem__host_default(&host);
    if (host.random(host.ctx, &place, sizeof(place)) != 0) {
        return idem__error_plain(error, IDEM_EUNAVAILABLE);
    }
    if (place % 8 != 0) {
        return walk_between(round, 0, UINT64_MAX, error);
    }
    rc = walk_between(round, 0, 0, error);
    if (rc != 0 || round->seen == 0) {
        return rc;
    }
    place = place / 8 % round->seen;
    rc = walk_between(round, place, UINT64_MAX, error);
    if (rc == 0 && !round->stopped) {
        rc = walk_between(round, 0, place, error);
    }
    return rc;
}

int idem_journal_catch_up(struct idem_journal *journal,
                          struct idem_store *store, idem_journal_fn *each,
                          void *ctx, struct idem_error *ret_error)
{
    struct round round = {.journal = journal,
                          .store = store,
                          .each = each,
                          .ctx = ctx};
    int rc = choose(&round, NULL, idem_store_url(store), ret_error);
    int turn;

    if (rc != 0 || round.store_url.len == 0) {
        return rc;
    }
    /* One process at a time. At an open of its own: a lock of one descriptor
     * would let threads in together. */
    turn = openat(journal->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (turn >= 0) {
        if (flock(turn, LOCK_EX | LOCK_NB) == 0) {
            rc = catch_up(&round, ret_error);
        }
        (void)close(turn);
    }
    return rc;
}

int idem_journal_drop(struct idem_journal *journal, const char *name,
                      struct idem_error *ret_error)
{
    const char *slash = strrchr(name, '/');
    const char *base = slash != NULL ? slash + 1 : name;
    enum idem__journal_hold hold = IDEM__JOURNAL_GONE;
    struct idem__journal_file file;
    int rc = idem__journal_check(journal, ret_error);

    if (rc != 0) {
        return rc;
    }
    if (idem__journal_kind_of(base) != IDEM__JOURNAL_FOREIGN) {
        hold = idem__journal_hold(journal, base, /* alone= */ true, &file,
                                  ret_error);
    }
    switch (hold) {
    case IDEM__JOURNAL_HELD:
        break;
    case IDEM__JOURNAL_BUSY:
        return idem__error(ret_error, IDEM_EUNAVAILABLE,
                           "another process is at the entry %.80s", base);
    case IDEM__JOURNAL_ERROR:
        return IDEM_EUNAVAILABLE;
    case IDEM__JOURNAL_GONE:
    case IDEM__JOURNAL_ODD:
        return idem__error(ret_error, IDEM_ENOTFOUND,
                           "the journal has no entry %.80s", name);
    }
    rc = unlinkat(journal->fd, base, 0) == 0
             ? 0
             : idem__journal_errno(ret_error, "delete", base);
    (void)close(file.fd);
    return rc;
}
