/* The inside of a PostgreSQL store. */
#ifndef IDEM_POSTGRES_STORE_H
#define IDEM_POSTGRES_STORE_H

#include "postgres/conn.h"
#include "postgres/task.h"
#include "store/remote/remote.h"

struct idem__pg_store {
    struct idem__remote remote;
    struct idem__pg_place place;
    struct idem__pg_conn conn; /* The leader's; but for wake. */
    struct idem__pg_env env;
    int64_t purged_in; /* env's, as the next. */
    uint64_t known_floor;
    char completion[IDEM__PG_COMPLETION_MAX]; /* Of statements: sql.h. */
};

/* The store, or NULL if @base is of another kind. */
struct idem__pg_store *idem__pg_store_of(struct idem_store *base);

#endif
