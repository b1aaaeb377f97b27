/* The inside of a PostgreSQL store. */
#ifndef IDEM_POSTGRES_STORE_H
#define IDEM_POSTGRES_STORE_H

#include "postgres/conn.h"
#include "postgres/task.h"
#include "store/remote/remote.h"

struct idem__pg_store {
    struct idem__remote remote;
    struct idem__pg_place place;
    struct idem__pg_conn conn; /* The leader's, except wake(). */
    struct idem__pg_env env;
    int64_t purged_in;                        /* env points to this, */
    uint64_t known_floor;                     /* and to this. */
    char completion[IDEM__PG_COMPLETION_MAX]; /* Its text: sql.h. */
};

/* Returns the store of @base, or NULL if it is of another kind. */
struct idem__pg_store *idem__pg_store_of(struct idem_store *base);

#endif
