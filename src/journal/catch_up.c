/* Outcomes that wait in a journal are told to its store in slices. The next
 * goes on where one stopped, so that many short processes get through a long
 * journal, and entries that cannot be told do not hold up those that can. */
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"
#include "journal/replay.h"
#include "journal/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

/* Names read in one slice before it gives up finding one that is due. */
#define NAMES_MAX 4000

struct slice {
    struct idem__round round;
    struct idem__usage usage;
    char prefix[IDEM__ROUND_PREFIX_MAX + 1];
    bool there[IDEM__JOURNAL_PARTS];
    size_t seen;
    bool looked; /* At an entry. */
    bool stopped;
    unsigned part; /* It stopped there, after this one. */
    char after[IDEM__ENTRY_NAME_LEN + 1];
};

/* At an open of its own: a lock of one descriptor would let threads in together.
 * -1: another process is at it, or it cannot be locked; both can wait. */
static int take_turn(const struct idem_journal *journal)
{
    int fd = openat(journal->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* A part whose count is zero is passed over, but for one at each turn, as a count
 * may be wrong. */
static bool may_have(const struct slice *s, unsigned part)
{
    unsigned probe = (unsigned)(idem__mono_ms() & 0xff);

    return s->there[part] && (!s->usage.counted || s->usage.files[part] > 0 ||
                              part == IDEM__JOURNAL_FLAT || part == probe);
}

static void look_at_names(struct slice *s, unsigned part, const char *after,
                          const struct idem__journal_names *names)
{
    size_t i;

    for (i = 0; i < names->len && !s->stopped; i++) {
        const char *name = names->names[i];
        const char *base = idem__journal_base(name);

        if (strncmp(base, after, IDEM__ENTRY_NAME_LEN) > 0 &&
            idem__round_is_due(&s->round, name)) {
            s->looked = true;
            s->stopped = idem__round_look_at(&s->round, name) != 0;
            s->part = part;
            memcpy(s->after, base, IDEM__ENTRY_NAME_LEN);
        }
    }
}

static int look_at_part(struct slice *s, unsigned part, const char *after,
                        struct idem_error *error)
{
    struct idem__journal_names names = {.len = 0};
    size_t seen = 0;
    int rc = idem__journal_names(s->round.journal, part, s->prefix, &names,
                                 &seen, error);

    s->seen += seen;
    if (rc == 0) {
        idem__journal_names_sort(&names);
        look_at_names(s, part, after, &names);
    }
    idem__journal_names_finish(&names);
    if (rc == 0 && !s->stopped) {
        s->part = (part + 1) % IDEM__JOURNAL_PARTS;
        memset(s->after, 0, sizeof(s->after));
    }
    return rc;
}

/* All parts, from the one where the last slice stopped, which comes again at
 * the end for the entries before that place. */
static int go_round(struct slice *s, struct idem_error *error)
{
    unsigned first = s->usage.part;
    int rc = 0;
    unsigned i;

    for (i = 0; rc == 0 && i <= IDEM__JOURNAL_PARTS; i++) {
        unsigned part = (first + i) % IDEM__JOURNAL_PARTS;

        if (s->stopped || s->seen > NAMES_MAX) {
            break;
        }
        if (may_have(s, part) &&
            (i < IDEM__JOURNAL_PARTS || s->usage.after[0] != '\0')) {
            rc = look_at_part(s, part, i == 0 ? s->usage.after : "", error);
        }
    }
    return rc;
}

static int catch_up(struct slice *s, struct idem_error *error)
{
    struct idem_journal *journal = s->round.journal;
    int rc = idem__journal_parts(journal, s->there, error);

    if (rc != 0) {
        return rc;
    }
    idem__usage_read(journal->fd, &s->usage);
    rc = go_round(s, error);
    /* Nothing is written where nothing was there. */
    if (rc == 0 && (s->looked || s->seen > NAMES_MAX) &&
        (s->part != s->usage.part || strcmp(s->after, s->usage.after) != 0)) {
        idem__usage_set_stop(journal->fd, s->part, s->after);
    }
    return rc;
}

int idem_journal_catch_up(struct idem_journal *journal,
                          struct idem_store *store, idem_journal_fn *each,
                          void *ctx, struct idem_error *ret_error)
{
    const char *url = idem_store_url(store);
    struct slice *s;
    int turn;
    int rc = idem__journal_check(journal, ret_error);

    if (rc != 0 || url == NULL) {
        return rc; /* Nothing can be meant for a store without a URL. */
    }
    s = idem__zalloc(sizeof(*s));
    if (s == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    s->round = (struct idem__round){
        .journal = journal,
        .store = store,
        .store_url = idem_str(url),
        .each = each,
        .ctx = ctx,
    };
    rc = idem__round_prefix(&s->round, s->prefix);
    turn = rc == 0 ? take_turn(journal) : -1;
    if (turn >= 0) {
        rc = catch_up(s, ret_error);
        (void)close(turn);
    }
    idem__free(s);
    return rc;
}
