/* Store time, anchored in the file, and the fence floor. */
#ifndef IDEM_STORE_SQLITE_CLOCK_H
#define IDEM_STORE_SQLITE_CLOCK_H

#include "contract/parts.h"
#include "store/sqlite/conn.h"

#include <pthread.h>

/* The part of the store's time that is sure: what is saved of it never goes back. */
static inline int64_t idem__clock_sure_ms(const struct idem_now *now)
{
    return now->store_ms - now->doubt_ms;
}

/* The clock row as this process last saw it. Writers know it exactly: they load
 * it in each transaction. */
struct idem__sqlite_clock {
    pthread_mutex_t mutex; /* Over the next two, which readers need. */
    struct idem_anchor anchor;
    int64_t last_ms;          /* The newest time in the file that is sure. */
    uint64_t fence_floor;     /* For writers ... */
    char mark[IDEM_MARK_MAX]; /* ... likewise; see idem__clock_mark(). */
};

void idem__clock_init(struct idem__sqlite_clock *clock);
void idem__clock_finish(struct idem__sqlite_clock *clock);

/* Loads the row; a reader leaves the fence floor alone. An SQLite result. */
int idem__clock_load(struct idem__sqlite_clock *clock, struct idem__conn *conn,
                     bool writer);

/* Store time for a write. *@ret_save: the row must be saved with this
 * transaction. 0 or IDEM_EUNAVAILABLE. */
int idem__clock_now(struct idem__sqlite_clock *clock,
                    const struct idem_host *host, struct idem_now *ret_now,
                    bool *ret_save, struct idem_error *error);

/* Store time for a read. *@ret_moved: the anchor is of another boot, and only a
 * writer may move it. 0 or IDEM_EUNAVAILABLE. */
int idem__clock_peek(struct idem__sqlite_clock *clock,
                     const struct idem_host *host, struct idem_now *ret_now,
                     bool *ret_moved);

/* Makes it @store_ms where @reading was taken, whatever it was. */
void idem__clock_set(struct idem__sqlite_clock *clock,
                     const struct idem_clock_reading *reading,
                     int64_t store_ms);

/* The store's mark (core/move.h) as @conn sees it. An SQLite result. */
int idem__clock_mark(struct idem__conn *conn, char ret_mark[IDEM_MARK_MAX]);

/* Writes the row. An SQLite result. */
int idem__clock_save(struct idem__sqlite_clock *clock, struct idem__conn *conn,
                     const struct idem_now *now);

#endif
