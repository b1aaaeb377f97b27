/* The entries of a journal: told to its store, shown, deleted. */
#include "base/crash.h"
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"
#include "core/token.h"
#include "journal/replay.h"
#include "journal/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that is held. */
struct held {
    const char *name;
    enum idem__journal_kind kind;
    int fd;
    uint8_t *bytes;
    struct idem__entry entry;
    char base[IDEM__ENTRY_NAME_LEN + 1]; /* Its name without its ending. */
};

/* ---- One entry ---- */

static int report(const struct idem__round *round,
                  struct idem_journal_info *info,
                  const struct idem__entry *entry,
                  const struct idem_error *error)
{
    if (round->each == NULL) {
        return 0;
    }
    if (entry != NULL) {
        info->store_url = entry->store_url;
        info->scope = entry->scope;
        info->key = entry->key;
        memcpy(info->id, entry->id, sizeof(info->id));
        memcpy(info->nonce, entry->nonce, sizeof(info->nonce));
        info->fence = entry->fence;
        info->outcome = entry->outcome;
        info->written_ms = entry->written_ms;
    }
    return round->each(round->ctx, info, error);
}

/* A file under the name of an entry says what it is, or nothing is believed. */
static int decode(struct held *held, uint64_t len, struct idem_error *error)
{
    int rc = idem__entry_decode(idem_bytes(held->bytes, (size_t)len),
                                &held->entry, held->base, error);

    if (rc == 0 && memcmp(held->base, idem__journal_base(held->name),
                          IDEM__ENTRY_NAME_LEN) != 0) {
        rc =
            idem__error(error, IDEM_ECORRUPT,
                        "the entry cannot be trusted: its name is not its own");
    }
    return rc;
}

static int load(struct held *held, uint64_t len, struct idem_error *error)
{
    int rc;

    if (len > IDEM__ENTRY_MAX) {
        return idem__error(
            error, IDEM_ECORRUPT,
            "the entry cannot be trusted: it is longer than any");
    }
    rc = idem__journal_read(held->fd, (size_t)len, &held->bytes, error);
    return rc == 0 ? decode(held, len, error) : rc;
}

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

/* The part of the journal that @name is in. */
static unsigned part_of(const char *name)
{
    const char *base = idem__journal_base(name);

    return base == name ? IDEM__JOURNAL_FLAT : idem__journal_part_of(base);
}

/* Keeps a file out of every later replay, for a person to see. */
static void set_aside(const struct idem__round *round, const struct held *held,
                      const char *ending)
{
    int len = (int)(idem__journal_base(held->name) - held->name) +
              IDEM__ENTRY_NAME_LEN;
    char to[IDEM__JOURNAL_NAME_MAX + 1];

    (void)snprintf(to, sizeof(to), "%.*s%s", len, held->name, ending);
    (void)renameat(round->journal->fd, held->name, round->journal->fd, to);
}

static enum idem_journal_state replay(const struct idem__round *round,
                                      const struct held *held, uint64_t len,
                                      struct idem_error *error)
{
    int rc;

    IDEM__CRASH_POINT("journal/replay/held");
    rc = tell(round->store, &held->entry, error);
    switch (rc) {
    case IDEM_OK:
        IDEM__CRASH_POINT("journal/replay/told");
        if (unlinkat(round->journal->fd, held->name, 0) == 0) {
            idem__usage_take_off(round->journal->fd, part_of(held->name), len);
        }
        IDEM__CRASH_POINT("journal/replay/removed");
        return IDEM_JOURNAL_RECORDED;
    case IDEM_ELOST:
        set_aside(round, held, ".lost");
        return IDEM_JOURNAL_LOST;
    default:
        return IDEM_JOURNAL_WAITING;
    }
}

/* The meaning of @rc of load(). False: the entry is good. */
static bool is_bad(const struct idem__round *round, const struct held *held,
                   int rc, enum idem_journal_state *ret_state)
{
    switch (rc) {
    case IDEM_OK:
        return false;
    case IDEM_ECORRUPT:
        *ret_state = IDEM_JOURNAL_DAMAGED;
        if (round->store != NULL) {
            set_aside(round, held, ".bad");
        }
        return true;
    case IDEM_ECONFIG:
        *ret_state = IDEM_JOURNAL_NEWER;
        return true;
    default:
        *ret_state = IDEM_JOURNAL_WAITING; /* It could not be read now. */
        return true;
    }
}

/* The hex digits of the name say so too, but they are only some. */
static bool is_wanted(const struct idem__round *round,
                      const struct idem__entry *entry)
{
    const struct idem_slice *url = &round->store_url;

    return (url->len == 0 ||
            (url->len == entry->store_url.len &&
             memcmp(url->base, entry->store_url.base, url->len) == 0)) &&
           (round->id == NULL ||
            memcmp(round->id, entry->id, IDEM_ID_LEN) == 0);
}

static enum idem_journal_state state_of(enum idem__journal_kind kind)
{
    switch (kind) {
    case IDEM__JOURNAL_LOST:
        return IDEM_JOURNAL_LOST;
    case IDEM__JOURNAL_FOREIGN:
    case IDEM__JOURNAL_BAD:
        return IDEM_JOURNAL_DAMAGED;
    case IDEM__JOURNAL_PENDING:
    case IDEM__JOURNAL_NEW:
        break;
    }
    return IDEM_JOURNAL_WAITING;
}

static int look_into(const struct idem__round *round, struct held *held,
                     struct idem_journal_info *info)
{
    struct idem_error error = {0};
    int rc = load(held, info->len, &error);

    if (is_bad(round, held, rc, &info->state)) {
        return report(round, info, &held->entry, &error);
    }
    if (!is_wanted(round, &held->entry)) {
        return 0;
    }
    info->state = state_of(held->kind);
    if (round->store != NULL) {
        info->state = replay(round, held, info->len, &error);
    }
    return report(round, info, &held->entry, &error);
}

/* An entry that cannot be locked is shown, unless it is gone. */
static int report_unheld(const struct idem__round *round,
                         enum idem__journal_hold hold,
                         struct idem_journal_info *info,
                         struct idem_error *error)
{
    switch (hold) {
    case IDEM__JOURNAL_BUSY:
        info->state = IDEM_JOURNAL_IN_USE;
        break;
    case IDEM__JOURNAL_ODD:
        info->state = IDEM_JOURNAL_DAMAGED;
        (void)idem__error(error, IDEM_ECORRUPT, "not an entry of a journal");
        break;
    case IDEM__JOURNAL_ERROR:
        info->state = IDEM_JOURNAL_WAITING;
        break;
    case IDEM__JOURNAL_HELD:
    case IDEM__JOURNAL_GONE:
        return 0;
    }
    return report(round, info, NULL, error);
}

int idem__round_look_at(const struct idem__round *round, const char *name)
{
    struct held held = {.name = name, .kind = idem__journal_kind_of(name)};
    struct idem_journal_info info = {.name = name};
    struct idem_error error = {0};
    enum idem__journal_hold hold = IDEM__JOURNAL_ODD;
    int rc;

    if (held.kind != IDEM__JOURNAL_FOREIGN) {
        hold = idem__journal_hold(round->journal, name,
                                  /* alone= */ round->store != NULL, &held.fd,
                                  &info.len, &error);
    }
    if (hold != IDEM__JOURNAL_HELD) {
        return report_unheld(round, hold, &info, &error);
    }
    rc = look_into(round, &held, &info);
    idem__free(held.bytes);
    (void)close(held.fd);
    return rc;
}

/* ---- All of them ---- */

/* A replay leaves alone what was set aside, and what is none of ours. */
bool idem__round_is_due(const struct idem__round *round, const char *name)
{
    enum idem__journal_kind kind = idem__journal_kind_of(name);

    if (round->store != NULL) {
        return kind == IDEM__JOURNAL_PENDING || kind == IDEM__JOURNAL_NEW;
    }
    return kind != IDEM__JOURNAL_FOREIGN ||
           (round->store_url.len == 0 && round->id == NULL);
}

/* Entries of one record have names that begin alike. */
static bool is_about(const char *name, const char *id)
{
    return id[0] == '\0' ||
           strncmp(idem__journal_base(name) + IDEM__ENTRY_STORE_LEN + 1, id,
                   IDEM__ENTRY_ID_LEN) == 0;
}

static int look_around(const struct idem__round *round,
                       const struct idem__journal_names *names)
{
    char id[IDEM__ENTRY_ID_LEN + 1] = "";
    int rc = 0;
    size_t i;

    if (round->id != NULL) {
        idem__entry_id_name(round->id, id);
    }
    for (i = 0; rc == 0 && i < names->len; i++) {
        if (idem__round_is_due(round, names->names[i]) &&
            is_about(names->names[i], id)) {
            rc = idem__round_look_at(round, names->names[i]);
        }
    }
    return rc;
}

int idem__round_prefix(const struct idem__round *round,
                       char ret_prefix[IDEM__ROUND_PREFIX_MAX + 1])
{
    char *end = ret_prefix + IDEM__ENTRY_STORE_LEN;
    int rc;

    ret_prefix[0] = '\0';
    if (round->store_url.len == 0) {
        return 0;
    }
    rc = idem__entry_store_name(round->store_url, ret_prefix);
    if (rc == 0 && round->id != NULL) {
        *end++ = '-';
        idem__entry_id_name(round->id, end);
    }
    return rc;
}

/* The entries of one record: in its part, and where older versions keep them. */
static int go_to_record(const struct idem__round *round, const char *prefix,
                        struct idem_error *error)
{
    struct idem__journal_names names = {.len = 0};
    int rc = idem__journal_names(round->journal, round->id[0], prefix, &names,
                                 NULL, error);

    if (rc == 0) {
        rc = idem__journal_names(round->journal, IDEM__JOURNAL_FLAT, prefix,
                                 &names, NULL, error);
    }
    if (rc == 0) {
        idem__journal_names_sort(&names);
        (void)look_around(round, &names);
    }
    idem__journal_names_finish(&names);
    return rc;
}

/* One part after the other, so that no more names are in memory than one has. */
static int go_through(const struct idem__round *round, const char *prefix,
                      struct idem_error *error)
{
    bool there[IDEM__JOURNAL_PARTS];
    int rc = idem__journal_parts(round->journal, there, error);
    bool stop = false;
    unsigned part;

    for (part = 0; rc == 0 && !stop && part < IDEM__JOURNAL_PARTS; part++) {
        struct idem__journal_names names = {.len = 0};

        if (there[part]) {
            rc = idem__journal_names(round->journal, part, prefix, &names, NULL,
                                     error);
        }
        if (rc == 0) {
            idem__journal_names_sort(&names);
            stop = look_around(round, &names) != 0;
        }
        idem__journal_names_finish(&names);
    }
    return rc;
}

/* The file called @name, if it is there: the directory before it may be left
 * out. */
static void go_to_name(const struct idem__round *round, const char *prefix,
                       const char *name)
{
    const char *base = idem__journal_base(name);
    char path[IDEM__JOURNAL_NAME_MAX + 1];
    unsigned parts[] = {idem__journal_part_of(base), IDEM__JOURNAL_FLAT};
    struct stat st;
    size_t i;

    if (strncmp(base, prefix, strlen(prefix)) != 0 ||
        !idem__round_is_due(round, base)) {
        return;
    }
    for (i = parts[0] == IDEM__JOURNAL_FLAT; i < 2; i++) {
        idem__journal_file_path(parts[i], base, path);
        if (fstatat(round->journal->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            (void)idem__round_look_at(round, path);
        }
    }
}

static int go_round(struct idem__round *round, const char *name,
                    struct idem_error *error)
{
    char prefix[IDEM__ROUND_PREFIX_MAX + 1];
    int rc = idem__journal_check(round->journal, error);

    if (rc == 0) {
        rc = idem__round_prefix(round, prefix);
    }
    if (rc != 0) {
        return rc;
    }
    if (name != NULL) {
        go_to_name(round, prefix, name);
        return 0;
    }
    return round->id != NULL ? go_to_record(round, prefix, error)
                             : go_through(round, prefix, error);
}

/* The choice of @filter, which may be NULL; @store_url where it names no
 * store. */
static int choose(struct idem__round *round,
                  const struct idem_journal_filter *filter,
                  const char *store_url, const char **ret_name,
                  struct idem_error *error)
{
    static const struct idem_journal_filter all = IDEM_JOURNAL_FILTER_INIT;

    if (filter == NULL) {
        filter = &all;
    }
    if (filter->size != sizeof(*filter)) {
        return idem__error(error, IDEM_EINVALID,
                           "filter: begin with IDEM_JOURNAL_FILTER_INIT");
    }
    round->id = filter->id;
    round->store_url =
        idem_str(filter->store_url != NULL ? filter->store_url : store_url);
    *ret_name = filter->name;
    return 0;
}

int idem_journal_replay(struct idem_journal *journal, struct idem_store *store,
                        const struct idem_journal_filter *filter,
                        idem_journal_fn *each, void *ctx,
                        struct idem_error *ret_error)
{
    struct idem__round round = {
        .journal = journal,
        .store = store,
        .each = each,
        .ctx = ctx,
    };
    const char *name = NULL;
    int rc = choose(&round, filter, idem_store_url(store), &name, ret_error);

    if (rc != 0 || round.store_url.len == 0) {
        return rc; /* Nothing can be meant for a store without a URL. */
    }
    return go_round(&round, name, ret_error);
}

int idem_journal_list(struct idem_journal *journal,
                      const struct idem_journal_filter *filter,
                      idem_journal_fn *each, void *ctx,
                      struct idem_error *ret_error)
{
    struct idem__round round = {
        .journal = journal,
        .each = each,
        .ctx = ctx,
    };
    const char *name = NULL;
    int rc = choose(&round, filter, NULL, &name, ret_error);

    return rc != 0 ? rc : go_round(&round, name, ret_error);
}

/* 0, IDEM_ENOTFOUND, IDEM_EUNAVAILABLE, or another code. */
static int drop(struct idem_journal *journal, const char *path,
                struct idem_error *ret_error)
{
    struct idem_error error = {0};
    uint64_t len = 0;
    int fd = -1;
    int rc = 0;

    switch (idem__journal_hold(journal, path, /* alone= */ true, &fd, &len,
                               &error)) {
    case IDEM__JOURNAL_HELD:
        break;
    case IDEM__JOURNAL_BUSY:
        return idem__error(ret_error, IDEM_EUNAVAILABLE,
                           "another process is at the entry %.80s", path);
    case IDEM__JOURNAL_ERROR:
        return idem__error(ret_error, error.code, "%s", error.text);
    case IDEM__JOURNAL_GONE:
    case IDEM__JOURNAL_ODD:
        return idem__error(ret_error, IDEM_ENOTFOUND,
                           "the journal has no entry %.80s",
                           idem__journal_base(path));
    }
    if (unlinkat(journal->fd, path, 0) != 0) {
        rc = idem__journal_errno(ret_error, "delete", path);
    } else {
        idem__usage_take_off(journal->fd, part_of(path), len);
    }
    (void)close(fd);
    return rc;
}

int idem_journal_drop(struct idem_journal *journal, const char *name,
                      struct idem_error *ret_error)
{
    const char *base = idem__journal_base(name);
    char path[IDEM__JOURNAL_NAME_MAX + 1];
    int rc = idem__journal_check(journal, ret_error);

    if (rc == 0 && idem__journal_kind_of(base) == IDEM__JOURNAL_FOREIGN) {
        rc = idem__error(ret_error, IDEM_ENOTFOUND,
                         "the journal has no entry %.80s", name);
    }
    if (rc != 0) {
        return rc;
    }
    idem__journal_file_path(idem__journal_part_of(base), base, path);
    rc = drop(journal, path, ret_error);
    if (rc == IDEM_ENOTFOUND) {
        idem__journal_file_path(IDEM__JOURNAL_FLAT, base, path);
        rc = drop(journal, path, ret_error);
    }
    return rc;
}
