/* A key-value file for one host, on LMDB. */
#include "kv.h"

#include <errno.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILE_MAX = 1 << 30 /* Bytes; the file grows as far as this. */
};

/* LMDB's locks are those of the process: a second MDB_env on the same file would
 * let go of them when it is closed. So one is shared, and found by its inode. */
struct kv {
    struct kv *next;
    dev_t dev;
    ino_t ino;
    pid_t pid; /* That opened it: it is not to be used after fork(). */
    unsigned users;
    MDB_env *env;
    MDB_dbi dbi;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* Over these. */
static struct kv *files;

/* For an @rc of LMDB, which is one of errno too. */
static int code_of(int rc)
{
    switch (rc) {
    case MDB_MAP_FULL:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return IDEM_EFULL;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
        return IDEM_ECORRUPT;
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
        return IDEM_ECONFIG;
    case EACCES:
    case EPERM:
    case EROFS:
        return IDEM_EDENIED;
    case ENOMEM:
        return IDEM_ENOMEM;
    default:
        return IDEM_EUNAVAILABLE;
    }
}

static int fail(struct idem_error *error, const char *what, int rc)
{
    if (error != NULL) {
        error->code = code_of(rc);
        (void)snprintf(error->text, sizeof(error->text), "lmdb: %.180s: %s",
                       what, mdb_strerror(rc));
    }
    return code_of(rc);
}

/* ---- The file ---- */

static int open_env(struct kv *kv, const char *path)
{
    MDB_txn *txn;
    int rc;

    (void)mdb_env_set_mapsize(kv->env, FILE_MAX);
    rc = mdb_env_open(kv->env, path, MDB_NOSUBDIR | MDB_NOTLS, 0600);
    rc = rc != 0 ? rc : mdb_txn_begin(kv->env, NULL, MDB_RDONLY, &txn);
    if (rc == 0) {
        rc = mdb_dbi_open(txn, NULL, 0, &kv->dbi);
        mdb_txn_abort(txn);
    }
    return rc;
}

/* The one that has @file open; else a new one. */
static int find(const char *path, struct kv **ret_kv)
{
    struct stat file = {.st_ino = 0};
    bool there = stat(path, &file) == 0;
    struct kv *kv = there ? files : NULL;
    int rc;

    while (kv != NULL && (kv->dev != file.st_dev || kv->ino != file.st_ino ||
                          kv->pid != getpid())) {
        kv = kv->next;
    }
    *ret_kv = kv;
    if (kv != NULL) {
        return 0;
    }
    kv = calloc(1, sizeof(*kv));
    rc = kv == NULL ? ENOMEM : mdb_env_create(&kv->env);
    if (rc == 0) {
        rc = open_env(kv, path);
        rc = rc == 0 && stat(path, &file) != 0 ? errno : rc;
        if (rc != 0) {
            mdb_env_close(kv->env);
        }
    }
    if (rc != 0) {
        free(kv);
        return rc;
    }
    kv->dev = file.st_dev;
    kv->ino = file.st_ino;
    kv->pid = getpid();
    kv->next = files;
    files = kv;
    *ret_kv = kv;
    return 0;
}

int kv_open(const char *path, bool create, struct kv **ret_kv,
            struct idem_error *error)
{
    int rc = 0;

    if (!create && access(path, F_OK) != 0) {
        (void)fail(error, path, errno);
        return errno == ENOENT ? IDEM_ENOTFOUND : code_of(errno);
    }
    (void)pthread_mutex_lock(&mutex);
    rc = find(path, ret_kv);
    if (rc == 0) {
        (*ret_kv)->users++;
    }
    (void)pthread_mutex_unlock(&mutex);
    return rc == 0 ? 0 : fail(error, path, rc);
}

void kv_close(struct kv *kv)
{
    struct kv **at = &files;

    if (kv->pid != getpid()) {
        return; /* Carried across fork(): the parent's. */
    }
    (void)pthread_mutex_lock(&mutex);
    if (--kv->users == 0) {
        while (*at != kv) {
            at = &(*at)->next;
        }
        *at = kv->next;
        mdb_env_close(kv->env);
        free(kv);
    }
    (void)pthread_mutex_unlock(&mutex);
}

/* ---- Transactions ---- */

/* The reader begins when nobody else can write any more. */
int kv_begin(struct kv *kv, bool write, struct kv_txn *ret_txn,
             struct idem_error *error)
{
    int rc = 0;

    ret_txn->kv = kv;
    ret_txn->read = NULL;
    ret_txn->write = NULL;
    if (write) {
        rc = mdb_txn_begin(kv->env, NULL, 0, &ret_txn->write);
    }
    if (rc == 0) {
        rc = mdb_txn_begin(kv->env, NULL, MDB_RDONLY, &ret_txn->read);
    }
    return rc == 0 ? 0 : fail(error, "cannot begin", rc);
}

static MDB_val val(struct idem_slice slice)
{
    return (MDB_val){slice.len, (void *)(uintptr_t)slice.base};
}

int kv_get(struct kv_txn *txn, struct idem_slice key,
           struct idem_slice *ret_value, struct idem_error *error)
{
    MDB_val name = val(key);
    MDB_val value = {0, NULL};
    int rc = mdb_get(txn->read, txn->kv->dbi, &name, &value);

    *ret_value = idem_bytes(value.mv_data, value.mv_size);
    if (rc != 0 && rc != MDB_NOTFOUND) {
        return fail(error, "cannot read", rc);
    }
    return rc == 0;
}

int kv_next(struct kv_txn *txn, struct idem_slice after,
            struct idem_slice *ret_key, struct idem_slice *ret_value,
            struct idem_error *error)
{
    MDB_cursor *at;
    MDB_val key = val(after);
    MDB_val value = {0, NULL};
    int rc = mdb_cursor_open(txn->read, txn->kv->dbi, &at);

    if (rc != 0) {
        return fail(error, "cannot read", rc);
    }
    rc = mdb_cursor_get(at, &key, &value, MDB_SET_RANGE);
    if (rc == 0 && key.mv_size == after.len &&
        memcmp(key.mv_data, after.base, after.len) == 0) {
        rc = mdb_cursor_get(at, &key, &value, MDB_NEXT);
    }
    mdb_cursor_close(at);
    *ret_key = idem_bytes(key.mv_data, key.mv_size);
    *ret_value = idem_bytes(value.mv_data, value.mv_size);
    if (rc != 0 && rc != MDB_NOTFOUND) {
        return fail(error, "cannot read", rc);
    }
    return rc == 0;
}

int kv_put(struct kv_txn *txn, struct idem_slice key, struct idem_slice value,
           struct idem_error *error)
{
    MDB_val name = val(key);
    MDB_val bytes = val(value);
    int rc = value.len > 0 ? mdb_put(txn->write, txn->kv->dbi, &name, &bytes, 0)
                           : mdb_del(txn->write, txn->kv->dbi, &name, NULL);

    return rc == 0 || rc == MDB_NOTFOUND ? 0 : fail(error, "cannot write", rc);
}

int kv_commit(struct kv_txn *txn, struct idem_error *error)
{
    int rc = mdb_txn_commit(txn->write);
    int code = rc == 0 ? 0 : fail(error, "cannot commit", rc);

    txn->write = NULL;
    if (code != 0 && code != IDEM_EFULL) {
        code = IDEM_EUNKNOWN;
        error->code = code;
    }
    return code;
}

void kv_end(struct kv_txn *txn)
{
    mdb_txn_abort(txn->read); /* NULL is allowed. */
    mdb_txn_abort(txn->write);
}
