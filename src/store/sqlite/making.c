/* Makes a store, and recognises later that it was made here; see lock_notes.c. */
#include "store/sqlite/store.h"

#include "base/crash.h"
#include "core/error.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static bool is_id(const struct idem__identity *noted,
                  const uint8_t id[IDEM__STORE_ID_LEN])
{
    return noted->made != IDEM__MADE_NONE &&
           memcmp(noted->id, id, IDEM__STORE_ID_LEN) == 0;
}

/* True if a store was created here, as far as the note shows. */
static bool was_made(const struct idem__identity *noted)
{
    return noted->made == IDEM__MADE_DONE || noted->made == IDEM__MADE_DAMAGED;
}

static int draw(struct idem__sqlite_store *store, struct idem_error *error)
{
    const struct idem_host *host = &store->base.options.host;

    return host->random(host->ctx, store->id, sizeof(store->id)) == 0
               ? 0
               : idem__error(error, IDEM_EUNAVAILABLE,
                             "cannot read random bytes");
}

/* Flushes the names of the lock file and of the empty database. */
static int flush_directory(const struct idem__sqlite_store *store,
                           struct idem_error *error)
{
    char path[IDEM__PATH_MAX + 1];
    int fd;
    int rc;

    idem__path_directory(store->path, path);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* A directory that we may not read, we cannot flush. */
    rc = fd < 0 || fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc == 0 ? 0
                   : idem__error(error, IDEM_EUNAVAILABLE,
                                 "cannot flush the directory %.120s: %s", path,
                                 strerror(rc));
}

/* Chooses the id of the store to be made, and notes it as "pending" in the lock file. A
 * pending store keeps its id: the process that began it may have committed it and
 * died. */
static int choose(struct idem__sqlite_store *store,
                  const struct idem__identity *noted, struct idem_error *error)
{
    int rc;

    if (noted->made == IDEM__MADE_PENDING && !store->is_copy) {
        memcpy(store->id, noted->id, sizeof(store->id));
        return 0;
    }
    rc = draw(store, error);
    if (rc != 0 || store->is_copy) {
        /* restore.c notes the id of a copy once all of it is marked. */
        return rc;
    }
    rc =
        idem__identity_write(store->lock, IDEM__MADE_PENDING, store->id, error);
    IDEM__CRASH_POINT("sqlite/making/pending");
    return rc == 0 ? flush_directory(store, error) : rc;
}

static int begin_new(struct idem__sqlite_store *store,
                     const struct idem__identity *noted,
                     struct idem_error *error)
{
    if (was_made(noted) && !store->may_lose) {
        return idem__identity_gone(store->path, error);
    }
    if (store->no_create) {
        return idem__error(error, IDEM_ENOTFOUND,
                           "no store in %.120s: the file is empty",
                           store->path);
    }
    idem__seen_forget(store->lock);
    return choose(store, noted, error);
}

static int differs(const struct idem__sqlite_store *store,
                   const struct idem__identity *noted, struct idem_error *error)
{
    return idem__error(
        error, IDEM_ECONFIG,
        noted->made == IDEM__MADE_NONE
            ? "%.90s-lock does not know the store beside it: put the right "
              "lock file back, or accept the store as it is: idem store "
              "mark-restored"
            : "%.90s is not the store that was made here: its lock file has "
              "another id; put the right file back, or accept this one: idem "
              "store mark-restored",
        store->path);
}

int idem__making_begin(struct idem__sqlite_store *store,
                       struct idem__conn *conn, bool empty,
                       struct idem_error *error)
{
    uint8_t id[IDEM__STORE_ID_LEN];
    struct idem__identity noted;
    bool has = false;
    int rc = 0;

    idem__identity_read(store->lock, &noted);
    if (empty) {
        return begin_new(store, &noted, error);
    }
    rc = idem__schema_load_id(conn, &has, id, error);
    if (rc != 0) {
        return rc;
    }
    if (has && (store->is_copy || is_id(&noted, id))) {
        memcpy(store->id, id, sizeof(store->id));
        return 0;
    }
    return differs(store, &noted, error);
}

/* Copies the log into the file once in the life of a store, so that the file alone has
 * the id: a file that is copied without its log is then refused, and not mistaken for a
 * first use. Frames that cannot be copied now are as durable in the log. */
static void carry_over(struct idem__conn *conn)
{
    (void)sqlite3_wal_checkpoint_v2(conn->db, NULL, SQLITE_CHECKPOINT_PASSIVE,
                                    NULL, NULL);
    IDEM__CRASH_POINT("sqlite/making/carried");
}

int idem__making_end(struct idem__sqlite_store *store, struct idem__conn *conn,
                     bool empty, struct idem_error *error)
{
    struct idem__identity noted;
    int rc = empty ? idem__schema_create(conn, store->id, error) : 0;

    if (rc != 0 || store->is_copy) {
        return rc;
    }
    IDEM__CRASH_POINT("sqlite/making/committed");
    idem__identity_read(store->lock, &noted);
    if (noted.made == IDEM__MADE_DONE) {
        return 0;
    }
    /* Write "made" only now that the id is committed: after a crash before this, the next
     * process finds "pending" beside the same id, and comes here again. */
    rc = idem__identity_write(store->lock, IDEM__MADE_DONE, store->id, error);
    IDEM__CRASH_POINT("sqlite/making/made");
    if (rc == 0) {
        carry_over(conn);
    }
    return rc;
}

int idem__making_accept(struct idem__sqlite_store *store,
                        struct idem_error *error)
{
    int rc =
        idem__identity_write(store->lock, IDEM__MADE_DONE, store->id, error);

    IDEM__CRASH_POINT("sqlite/making/accepted");
    return rc;
}

int idem__making_missing(const struct idem__sqlite_store *store,
                         struct idem_error *error)
{
    struct idem__identity noted;
    struct stat st;

    if (store->may_lose || lstat(store->path, &st) == 0 || errno != ENOENT) {
        return 0;
    }
    idem__identity_read(store->lock, &noted);
    return was_made(&noted) ? idem__identity_gone(store->path, error) : 0;
}

void idem__making_renew(const struct idem__sqlite_store *store)
{
    struct idem__identity noted;

    idem__identity_read(store->lock, &noted);
    if (noted.made == IDEM__MADE_NONE) {
        (void)idem__identity_write(store->lock, IDEM__MADE_DONE, store->id,
                                   /* error= */ NULL);
    }
}
