/* A pool of connections that only read: a replay takes no lock. */
#include "base/host.h"
#include "store/sqlite/store.h"

void idem__readers_init(struct idem__sqlite_readers *readers)
{
    *readers = (struct idem__sqlite_readers){
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .freed = PTHREAD_COND_INITIALIZER,
    };
}

void idem__readers_finish(struct idem__sqlite_readers *readers)
{
    while (readers->idle != NULL) {
        struct idem__conn *conn = readers->idle;

        readers->idle = conn->next;
        idem__conn_close(conn);
    }
    (void)pthread_cond_destroy(&readers->freed);
    (void)pthread_mutex_destroy(&readers->mutex);
}

void idem__readers_drop_idle(struct idem__sqlite_readers *readers)
{
    (void)pthread_mutex_lock(&readers->mutex);
    while (readers->idle != NULL) {
        struct idem__conn *conn = readers->idle;

        readers->idle = conn->next;
        readers->open--;
        idem__conn_close(conn);
    }
    (void)pthread_cond_broadcast(&readers->freed);
    (void)pthread_mutex_unlock(&readers->mutex);
}

/* Opens one more, for which a place is taken already. */
static struct idem__conn *open_reader(struct idem__sqlite_store *store,
                                      bool wait, struct idem_error *error)
{
    struct idem__sqlite_readers *readers = &store->readers;
    struct idem__conn *conn = NULL;
    int64_t deadline_ms = idem__mono_ms();

    if (wait) {
        deadline_ms += store->base.options.timeout_ms;
    }
    if (idem__sqlite_connect_reader(store, deadline_ms, &conn, error) != 0) {
        (void)pthread_mutex_lock(&readers->mutex);
        readers->open--;
        (void)pthread_cond_signal(&readers->freed);
        (void)pthread_mutex_unlock(&readers->mutex);
        return NULL;
    }
    return conn;
}

struct idem__conn *idem__readers_take(struct idem__sqlite_store *store,
                                      bool wait, struct idem_error *error)
{
    struct idem__sqlite_readers *readers = &store->readers;
    struct idem__conn *conn;
    bool may_open = false;

    (void)pthread_mutex_lock(&readers->mutex);
    while (wait && readers->idle == NULL &&
           readers->open == IDEM__READERS_MAX) {
        (void)pthread_cond_wait(&readers->freed, &readers->mutex);
    }
    conn = readers->idle;
    if (conn != NULL) {
        readers->idle = conn->next;
    } else if (readers->open < IDEM__READERS_MAX) {
        readers->open++;
        may_open = true;
    }
    (void)pthread_mutex_unlock(&readers->mutex);
    return may_open ? open_reader(store, wait, error) : conn;
}

struct idem__conn *idem__readers_await(struct idem__sqlite_store *store)
{
    struct idem__sqlite_readers *readers = &store->readers;
    struct idem__conn *conn;

    (void)pthread_mutex_lock(&readers->mutex);
    while (readers->idle == NULL && readers->open > 0) {
        (void)pthread_cond_wait(&readers->freed, &readers->mutex);
    }
    conn = readers->idle;
    if (conn != NULL) {
        readers->idle = conn->next;
    }
    (void)pthread_mutex_unlock(&readers->mutex);
    return conn;
}

void idem__readers_add(struct idem__sqlite_store *store,
                       struct idem__conn *conn)
{
    struct idem__sqlite_readers *readers = &store->readers;

    (void)pthread_mutex_lock(&readers->mutex);
    readers->open++;
    (void)pthread_mutex_unlock(&readers->mutex);
    idem__readers_give(store, conn);
}

void idem__readers_give(struct idem__sqlite_store *store,
                        struct idem__conn *conn)
{
    struct idem__sqlite_readers *readers = &store->readers;

    (void)pthread_mutex_lock(&readers->mutex);
    conn->next = readers->idle;
    readers->idle = conn;
    (void)pthread_cond_signal(&readers->freed);
    (void)pthread_mutex_unlock(&readers->mutex);
}
