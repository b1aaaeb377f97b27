/* Opens and closes the SQLite store, and gives its ops to the reader and to the group. */
#include "base/crash.h"
#include "base/heap.h"
#include "base/host.h"
#include "base/process.h"
#include "core/error.h"
#include "queue/op.h"
#include "store/sqlite/store.h"

#include <assert.h>
#include <idem/queue.h>
#include <idem/sqlite.h>
#include <stdio.h>

/* The owner and the store share the clock of one host. The only uncertainty is how long a
 * process takes to stop. */
#define OWNER_MARGIN_MS 500

static const struct idem_store_ops sqlite_ops;

static struct idem__sqlite_store *sqlite_from_base(struct idem_store *base)
{
    assert(base->ops == &sqlite_ops);
    return (struct idem__sqlite_store *)base;
}

static void sqlite_peek(struct idem_store *base, struct idem_op **ops,
                        size_t *n)
{
    idem__sqlite_peek(sqlite_from_base(base), ops, n);
}

/* ---- Operations ---- */

static size_t sqlite_submit_all(struct idem_store *base, struct idem_op **ops,
                                size_t n)
{
    struct idem__sqlite_store *store = sqlite_from_base(base);
    size_t i;

    if (!idem__sqlite_reads_only(store)) {
        return idem__group_submit(&store->group, ops, n);
    }
    /* The reader has answered each op for which a read is enough, so the others would
     * write. */
    for (i = 0; i < n; i++) {
        (void)idem__op_fail(ops[i], IDEM_EDENIED,
                            "the store was opened read-only");
        idem__op_answer(ops[i]);
    }
    return n;
}

static enum idem_cancel sqlite_cancel(struct idem_store *base,
                                      struct idem_op *op)
{
    return idem__leader_cancel(&sqlite_from_base(base)->group.leader, op);
}

static void sqlite_drive(struct idem_store *base, struct idem_queue *queue,
                         int64_t deadline_ms)
{
    idem__leader_drive(&sqlite_from_base(base)->group.leader, queue,
                       deadline_ms);
}

static int enter(struct idem_store *base, int64_t deadline_ms, const bool *ends,
                 struct idem_error *ret_error)
{
    /* This is the lock between processes. From here on no other process of idem changes a
     * record, so what the batch reads stays as it is until it commits. */
    int rc = idem__lock_acquire_for(sqlite_from_base(base)->lock, deadline_ms,
                                    ends, ret_error);

    IDEM__CRASH_POINT("sqlite/lock/taken");
    return rc;
}

static void leave(struct idem_store *base)
{
    idem__lock_release(sqlite_from_base(base)->lock);
}

/* Called when the lock could not be taken. A read may still answer @op: a replay needs no
 * lock. From now on claims read first. */
static bool refuse(struct idem_store *base, struct idem_op *op)
{
    struct idem__sqlite_store *store = sqlite_from_base(base);

    __atomic_store_n(&store->new_in_a_row, 0, __ATOMIC_RELAXED);
    return idem__sqlite_answer_alone(store, op);
}

static const struct idem__group_ops group_ops = {
    .enter = enter,
    .run = idem__sqlite_run,
    .refuse = refuse,
    .leave = leave,
    .take_chore = idem__sqlite_take_copy,
    .do_chore = idem__sqlite_copy,
};

/* Also finishes a store that is half built. */
static void finish(struct idem__sqlite_store *store)
{
    idem__conn_close(store->table.conn);
    idem__files_close(&store->files);
    idem__readers_finish(&store->readers);
    idem__reserve_close(&store->reserve);
    if (store->lock != NULL) {
        idem__lock_close(store->lock);
    }
    idem__sqlite_purge_finish(&store->purge);
    idem__replays_destroy(store->replays);
    idem__clock_finish(&store->clock);
    idem__store_finish(&store->base);
    idem__free(store);
}

static void sqlite_close(struct idem_store *base)
{
    struct idem__sqlite_store *store = sqlite_from_base(base);

    /* A child of fork() must not close the connections of its parent: that would drop the
     * parent's locks. It leaves them, and their memory, as they are. */
    if (base->pid != idem__process()) {
        return;
    }
    idem__group_finish(&store->group);
    idem__sqlite_tidy(store);
    finish(store);
}

static const struct idem_store_ops sqlite_ops = {
    .name = "sqlite",
    .peek = sqlite_peek,
    .submit_all = sqlite_submit_all,
    .cancel = sqlite_cancel,
    .drive = sqlite_drive,
    .close = sqlite_close,
};

/* ---- Opening ---- */

static int open_lock(struct idem__sqlite_store *store, struct idem_error *error)
{
    char name[IDEM__PATH_MAX + 8];

    (void)snprintf(name, sizeof(name), "%s-lock", store->path);
    return idem__lock_open(name, &store->share, &store->lock, error);
}

/* Reading an application's database must not leave a lock file beside it. If there is a
 * lock file, the database is most probably a store, and the lock is used. */
static bool needs_lock(const struct idem__sqlite_store *store)
{
    char name[IDEM__PATH_MAX + 8];
    struct stat st;

    (void)snprintf(name, sizeof(name), "%s-lock", store->path);
    return lstat(name, &st) == 0 || lstat(store->path, &st) != 0 ||
           !idem__sqlite_is_of_application(store->path);
}

/* A store that was restored from a copy must be marked: unmarked, it would hand out
 * fences a second time, and run again what was done since the copy was made. The lock
 * file has the latest time that the store had. */
static int check_age(struct idem__sqlite_store *store, struct idem_error *error)
{
    store->found_ms = store->clock.last_ms;
    if (store->is_copy || idem__seen_ms(store->lock) <= store->found_ms) {
        return 0;
    }
    return idem__error(
        error, IDEM_ECONFIG,
        "the store is older than it was before: it was restored from a copy; "
        "mark it: idem store mark-restored");
}

/* Writes the anchor of this boot, if the file has none. */
static int anchor(struct idem__sqlite_store *store, struct idem_error *error)
{
    struct idem__conn *conn = store->table.conn;
    struct idem_now now;
    bool moved;
    int rc = idem__clock_load(&store->clock, conn, /* writer= */ true);

    if (rc != SQLITE_OK) {
        return idem__conn_fail(conn, rc, "read the clock", error);
    }
    /* Check this before the time is moved: an older copy shows by the time that was saved
     * in it. */
    rc = check_age(store, error);
    if (rc != 0) {
        return rc;
    }
    rc = idem__clock_peek(&store->clock, &store->base.options.host, &now,
                          &moved);
    if (rc == 0 && moved) {
        rc = idem__clock_now(&store->clock, &store->base.options.host, &now,
                             &moved, NULL);
    }
    if (rc != 0) {
        return idem__error(error, rc, "cannot read the clock");
    }
    if (moved && !store->is_copy) { /* A copy is marked first. */
        rc = idem__clock_save(&store->clock, conn, &now);
        if (rc == SQLITE_OK) {
            idem__seen_note(store->lock, idem__clock_sure_ms(&now));
        }
    }
    return rc == SQLITE_OK ? 0
                           : idem__conn_fail(conn, rc, "set the clock", error);
}

/* Takes the path from SQLite, which has resolved it as the kernel does. */
static void set_url(struct idem__sqlite_store *store,
                    const struct idem__conn *conn)
{
    (void)snprintf(store->url, sizeof(store->url), "sqlite:%s",
                   sqlite3_db_filename(conn->db, "main"));
    store->base.url = store->url;
}

/* Opens the first connection to the database of an application, which does not use our
 * lock. */
static int connect_visitor(struct idem__sqlite_store *store,
                           struct idem_error *error)
{
    struct idem__conn *reader;
    int rc = idem__sqlite_connect(store, /* writer= */ false, &reader, error);

    if (rc == 0) {
        set_url(store, reader);
        idem__readers_add(store, reader);
    }
    return rc;
}

static int connect_writer(struct idem__sqlite_store *store,
                          struct idem_error *error)
{
    int rc = idem__making_missing(store, error);

    if (rc != 0) {
        return rc;
    }
    rc = idem__path_create(store->path, &store->share, error);
    if (rc != 0) {
        return rc;
    }
    IDEM__CRASH_POINT("sqlite/open/file-made");
    rc = idem__sqlite_connect(store, /* writer= */ true, &store->table.conn,
                              error);
    if (rc != 0) {
        return rc;
    }
    IDEM__CRASH_POINT("sqlite/open/connected");
    rc = anchor(store, error);
    IDEM__CRASH_POINT("sqlite/open/anchored");
    return rc;
}

/* Opens the first connections, under the lock: one that writes, and makes the file if it
 * is missing, and one that reads. */
static int connect_first(struct idem__sqlite_store *store,
                         struct idem_error *error)
{
    struct idem__conn *reader;
    int rc;

    if (store->lock == NULL) {
        return connect_visitor(store, error);
    }
    rc = idem__sqlite_lock(store, error);
    if (rc != 0) {
        return rc;
    }
    IDEM__CRASH_POINT("sqlite/open/locked");
    /* The first connection makes the file, so it comes under the lock: of two processes
     * that open a new store one makes it and the other finds it. */
    rc = idem__sqlite_reads_only(store) ? 0 : connect_writer(store, error);
    if (rc != 0) {
        goto done;
    }
    rc = store->table.conn != NULL
             ? idem__sqlite_connect_beside(store, &reader, error)
             : idem__sqlite_connect(store, /* writer= */ false, &reader, error);
    if (rc != 0) {
        goto done;
    }
    set_url(store, reader);
    idem__files_note(store);
    store->opened = store->files.file;
    /* A process may have died during a change and left the generation odd. Under the lock
     * no change is in progress: the interrupted change was committed, or it was not. */
    idem__lock_change(store->lock, /* begins= */ false);
    idem__readers_add(store, reader);
    IDEM__CRASH_POINT("sqlite/open/ready");
done:
    idem__lock_release(store->lock);
    return rc;
}

/* On failure @store is half built, and finish() takes it. */
static int set_up(struct idem__sqlite_store *store,
                  const struct idem_open_options *options,
                  struct idem_error *error)
{
    int rc;

    store->reserve.fd = -1;
    store->files.fd = -1;
    idem__clock_init(&store->clock);
    idem__readers_init(&store->readers);
    rc = idem__store_init(&store->base, &sqlite_ops, options, error);
    if (rc == 0 && needs_lock(store)) {
        rc = open_lock(store, error);
    }
    store->base.margin_ms = OWNER_MARGIN_MS;
    store->table.head = store->head;
    store->table.notes_failed = true;
    return rc;
}

/* The stores that a caller accepts. */
enum taken {
    TAKEN_STORE,   /* The store that was there before. */
    TAKEN_MADE,    /* Or a new one if there is none, whatever the URL says. */
    TAKEN_COPY,    /* Or an older copy of it, or another store. */
    TAKEN_NOTHING, /* Or a new one in place of one that was lost. */
};

static bool is_no_create(const struct idem_open_options *options,
                         enum taken taken, const struct idem__place *place)
{
    if (taken == TAKEN_MADE || taken == TAKEN_NOTHING) {
        return false;
    }
    return place->no_create ||
           (options != NULL &&
            (options->flags & (IDEM_OPEN_READONLY | IDEM_OPEN_NO_CREATE)) != 0);
}

/* Reports that the store is missing. A lock file beside it shows that it was there: the
 * lock file stays when the database is deleted. */
static int missing(const char *path, struct idem_error *error)
{
    char lock[IDEM__PATH_MAX + 8];
    struct stat st;

    (void)snprintf(lock, sizeof(lock), "%s-lock", path);
    return idem__error(error, IDEM_ENOTFOUND,
                       lstat(lock, &st) == 0
                           ? "the store %.120s is missing, but its lock file "
                             "is there: mount its disk or put it back"
                           : "no store in %.120s; idem store create "
                             "makes one",
                       path);
}

/* Finds the place of the store, and the owner of its files. */
static int find_place(const char *text, const struct idem_open_options *options,
                      enum taken taken, struct idem__place *ret_place,
                      struct idem__share *ret_share, struct idem_error *error)
{
    int rc = idem__path_split(text, ret_place, error);

    if (rc != 0) {
        return rc;
    }
    rc = idem__path_check(ret_place, error);
    if (rc != 0) {
        return rc;
    }
    if (!ret_place->exists && is_no_create(options, taken, ret_place)) {
        return missing(ret_place->path, error);
    }
    rc = idem__path_share(ret_place->path, ret_place->gid, ret_share, error);
    return rc != 0 ? rc : idem__path_absolute(ret_place, error);
}

static int open_store(const char *path, const struct idem_open_options *options,
                      enum taken taken, struct idem__sqlite_store **ret_store,
                      struct idem_error *ret_error)
{
    struct idem__sqlite_store *store;
    bool threaded = options != NULL && (options->flags & IDEM_OPEN_THREAD) != 0;
    struct idem__place place;
    struct idem__share share;
    int rc = find_place(path, options, taken, &place, &share, ret_error);

    if (rc != 0) {
        return rc;
    }
    store = idem__zalloc(sizeof(*store));
    if (store == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    (void)strcpy(store->path, place.path);
    store->share = share;
    store->is_copy = taken == TAKEN_COPY || taken == TAKEN_NOTHING;
    store->may_lose = taken == TAKEN_NOTHING;
    store->no_create = is_no_create(options, taken, &place);
    store->files.is_local = !place.network && !place.test;
    rc = set_up(store, options, ret_error);
    if (rc != 0) {
        goto done;
    }
    if (place.test && store->lock != NULL) {
        rc = idem__lock_test(store->lock, ret_error);
    }
    if (rc != 0) {
        goto done;
    }
    rc = connect_first(store, ret_error);
    if (rc != 0) {
        goto done;
    }
    /* Keep no records of an application's database in memory: its own transactions do not
     * raise the generation. */
    if (store->base.options.cache_max > 0 && store->lock != NULL &&
        !store->of_application) {
        store->replays = idem__replays_create(store->base.options.cache_max);
        rc = store->replays == NULL ? IDEM_ENOMEM : 0;
    }
    if (rc != 0 || idem__group_init(&store->group, &store->base, &group_ops,
                                    threaded) != 0) {
        rc = idem__error_plain(ret_error, IDEM_ENOMEM);
    }
done:
    if (rc != 0) {
        finish(store);
        return rc;
    }
    *ret_store = store;
    return 0;
}

int idem__sqlite_open_copy(const char *path,
                           const struct idem_open_options *options,
                           bool may_lose, struct idem__sqlite_store **ret_store,
                           struct idem_error *error)
{
    return open_store(path, options, may_lose ? TAKEN_NOTHING : TAKEN_COPY,
                      ret_store, error);
}

int idem_sqlite_open(const char *path, const struct idem_open_options *options,
                     struct idem_store **ret_store,
                     struct idem_error *ret_error)
{
    struct idem__sqlite_store *store;
    int rc = open_store(path, options, TAKEN_STORE, &store, ret_error);

    if (rc == 0) {
        *ret_store = &store->base;
    }
    return rc;
}

int idem_sqlite_create(const char *path, bool *ret_created,
                       struct idem_error *ret_error)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem__sqlite_store *store;
    bool created;
    int rc;

    options.flags = IDEM_OPEN_READONLY;
    rc = open_store(path, &options, TAKEN_STORE, &store, ret_error);
    if (rc != 0 && rc != IDEM_ENOTFOUND) {
        return rc;
    }
    created = rc == IDEM_ENOTFOUND;
    if (!created) {
        idem_close(&store->base);
    }
    /* Open it for writing even if it is there already: only that detects a copy of
     * another store. */
    rc = open_store(path, /* options= */ NULL, TAKEN_MADE, &store, ret_error);
    if (rc != 0) {
        return rc;
    }
    idem_close(&store->base);
    *ret_created = created;
    return 0;
}
