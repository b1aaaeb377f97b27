/* Checks whether the database is as a store needs it. */
#include "postgres/admin.h"

#include "core/error.h"

#include <idem/postgres.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    VERSION_MIN = 130000,
    CLOCK_WARN_MS = 1000,
    CLOCK_BAD_MS = 5 * 60 * 1000,
};

void idem__pg_tell(struct idem__pg_check *check, enum idem_grade grade,
                   const char *about, const char *mend, const char *format, ...)
{
    char text[600];
    struct idem_finding finding = {
        .grade = grade,
        .code = grade == IDEM_GRADE_BAD ? check->code : 0,
        .about = about,
        .text = text,
        .mend = mend,
    };
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    check->each(check->ctx, &finding);
}

/* Runs @sql, and returns its result, which has a row. NULL: the reason was reported. */
static PGresult *row(struct idem__pg_check *check, const char *about,
                     const char *sql)
{
    struct idem_error error;
    PGresult *result =
        idem__pg_admin_run(check->conn, check->place, sql, &error);

    if (result == NULL || PQntuples(result) == 0) {
        check->code = result == NULL ? error.code : IDEM_ECONFIG;
        idem__pg_tell(check, IDEM_GRADE_BAD, about, NULL, "%s",
                      result == NULL ? error.text
                                     : "a table of the store is empty");
        PQclear(result);
        return NULL;
    }
    return result;
}

static bool is_yes(const PGresult *result, int column)
{
    const char *text = PQgetvalue(result, 0, column);

    return strcmp(text, "t") == 0 || strcmp(text, "on") == 0;
}

static void check_server(struct idem__pg_check *check)
{
    int version = PQserverVersion(check->conn);
    PGresult *result = row(check, "server",
                           "SELECT pg_is_in_recovery(), "
                           "current_setting('server_version')");

    if (result == NULL) {
        return;
    }
    check->code = IDEM_ECONFIG;
    if (is_yes(result, 0)) {
        idem__pg_tell(check, IDEM_GRADE_BAD, "server",
                      "name the primary, or all hosts of the cluster.",
                      "%s is a replica, which takes no writes",
                      check->place->endpoint);
    } else if (version < VERSION_MIN) {
        idem__pg_tell(check, IDEM_GRADE_BAD, "server", NULL,
                      "PostgreSQL %.40s is too old: idem needs version 13 or "
                      "later",
                      PQgetvalue(result, 0, 1));
    } else {
        idem__pg_tell(check, IDEM_GRADE_OK, "server", NULL,
                      "PostgreSQL %.40s answers at %s",
                      PQgetvalue(result, 0, 1), check->place->endpoint);
    }
    PQclear(result);
}

static void check_tls(struct idem__pg_check *check)
{
    const char *mode = idem__pg_place_get(check->place, "sslmode");

    if (check->place->local) {
        return;
    }
    if (PQsslInUse(check->conn) == 1 && mode != NULL &&
        strcmp(mode, "verify-full") == 0) {
        idem__pg_tell(check, IDEM_GRADE_OK, "tls", NULL,
                      "the connection is encrypted, and the server's identity "
                      "is verified");
        return;
    }
    idem__pg_tell(
        check, IDEM_GRADE_WARN, "tls",
        "set sslmode=verify-full, or leave sslmode out.",
        PQsslInUse(check->conn) == 1
            ? "the connection is encrypted, but the server's identity is not "
              "verified"
            : "the connection is not encrypted: records and the password's "
              "proof can be read in transit");
}

/* ---- Whether a commit is on disk ---- */

static void check_disk(struct idem__pg_check *check)
{
    PGresult *result = row(check, "durability",
                           "SELECT current_setting('fsync'),"
                           " current_setting('full_page_writes'),"
                           " current_setting('synchronous_commit'),"
                           " current_setting('wal_level')");

    if (result == NULL) {
        return;
    }
    check->code = IDEM_ECONFIG;
    if (!is_yes(result, 0)) {
        idem__pg_tell(
            check, IDEM_GRADE_BAD, "durability",
            "set fsync = on in postgresql.conf.",
            "fsync is off: a power cut may lose or damage any record");
    } else if (!is_yes(result, 1)) {
        idem__pg_tell(
            check, IDEM_GRADE_BAD, "durability",
            "set full_page_writes = on in postgresql.conf.",
            "full_page_writes is off: a power cut may damage records");
    } else {
        idem__pg_tell(
            check, IDEM_GRADE_OK, "durability", NULL,
            "commits are flushed to disk: fsync and full_page_writes are "
            "on, and each transaction sets synchronous_commit (default here: "
            "%.20s)",
            PQgetvalue(result, 0, 2));
    }
    PQclear(result);
}

/* How many replicas are connected, and for how many the server waits. */
struct replicas {
    long all;
    long hidden; /* This role sees that they exist, and no more. */
    long synchronous;
    long
        quorum; /* The server waits for some of these, for whichever are first. */
};

static void tell_synchronous(struct idem__pg_check *check,
                             const struct replicas *n)
{
    long others = n->all - n->synchronous - n->quorum;

    if (n->hidden > 0) {
        idem__pg_tell(check, IDEM_GRADE_OK, "replicas", NULL,
                      "synchronous_standby_names is set: a failover to a "
                      "synchronous replica loses no outcome; this role may not "
                      "see which are");
    } else if (n->synchronous + n->quorum == 0) {
        idem__pg_tell(check, IDEM_GRADE_BAD, "replicas",
                      "bring one back, or correct synchronous_standby_names.",
                      "synchronous_standby_names is set, but none of these "
                      "replicas is connected: nothing can be recorded");
    } else {
        idem__pg_tell(check, IDEM_GRADE_OK, "replicas", NULL,
                      "synchronous_standby_names is set: a failover to %s "
                      "loses no outcome (%ld synchronous, %ld others)",
                      n->quorum > 0 ? "the one that has received the most"
                                    : "a synchronous replica",
                      n->synchronous + n->quorum, others);
    }
}

static void check_replicas(struct idem__pg_check *check)
{
    PGresult *result =
        row(check, "replicas",
            "SELECT count(*), count(*) FILTER (WHERE sync_state IS NULL),"
            " count(*) FILTER (WHERE sync_state = 'sync'),"
            " count(*) FILTER (WHERE sync_state = 'quorum'),"
            " current_setting('synchronous_standby_names')"
            " FROM pg_stat_replication");
    struct replicas n;

    if (result == NULL) {
        return;
    }
    check->code = IDEM_EUNAVAILABLE;
    n.all = strtol(PQgetvalue(result, 0, 0), NULL, 10);
    n.hidden = strtol(PQgetvalue(result, 0, 1), NULL, 10);
    n.synchronous = strtol(PQgetvalue(result, 0, 2), NULL, 10);
    n.quorum = strtol(PQgetvalue(result, 0, 3), NULL, 10);
    if (PQgetvalue(result, 0, 4)[0] != '\0') {
        tell_synchronous(check, &n);
    } else if (n.all > 0) {
        idem__pg_tell(
            check, IDEM_GRADE_WARN, "replicas",
            "set synchronous_standby_names on the server.",
            "%ld asynchronous replica%s: a failover to one loses outcomes "
            "that were answered, and work may be done a second time",
            n.all, n.all == 1 ? "" : "s");
    } else {
        idem__pg_tell(check, IDEM_GRADE_OK, "replicas", NULL,
                      "none is connected");
    }
    PQclear(result);
}

/* ---- Clock ---- */

static int64_t wall_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void check_clock(struct idem__pg_check *check)
{
    int64_t before_ms = wall_ms();
    PGresult *result =
        row(check, "clock",
            "SELECT floor(extract(epoch FROM clock_timestamp())::float8"
            " * 1000::float8)::int8");
    int64_t after_ms = wall_ms();
    int64_t server_ms;
    int64_t off_ms;

    if (result == NULL) {
        return;
    }
    server_ms = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    off_ms = server_ms < before_ms  ? before_ms - server_ms
             : server_ms > after_ms ? server_ms - after_ms
                                    : 0;
    check->code = IDEM_ECONFIG;
    if (off_ms <= CLOCK_WARN_MS) {
        idem__pg_tell(check, IDEM_GRADE_OK, "clock", NULL,
                      "the server's clock and this machine's agree within %lld "
                      "ms",
                      (long long)(off_ms + after_ms - before_ms + 1));
        return;
    }
    idem__pg_tell(check,
                  off_ms > CLOCK_BAD_MS || check->place->host_clock
                      ? IDEM_GRADE_BAD
                      : IDEM_GRADE_WARN,
                  "clock", "keep both right with NTP.",
                  "this machine's clock is %lld ms off the server's%s",
                  (long long)off_ms,
                  check->place->host_clock
                      ? ", and the store URL has clock=host"
                      : "; leases and retention follow the server's");
}

/* ---- Schema ---- */

/* Reports a fence floor far in the future. A fence is the time in ms, or a little more if
 * another one has that number. So somebody else wrote such a floor, or a record with such
 * a fence that was purged. */
static void check_floor(struct idem__pg_check *check, const PGresult *result)
{
    const char *floor = PQgetvalue(result, 0, 4);
    char mend[240];

    if (!is_yes(result, 5)) {
        return;
    }
    (void)snprintf(mend, sizeof(mend),
                   "UPDATE %s.idem_store SET fence_floor = "
                   "floor(extract(epoch FROM now()) * 1000).",
                   check->place->schema);
    idem__pg_tell(
        check,
        strtoll(floor, NULL, 10) == INT64_MAX ? IDEM_GRADE_BAD
                                              : IDEM_GRADE_WARN,
        "fences", mend,
        "fence_floor in idem_store is %.20s, more than a year in the future: "
        "new attempts get fences above it, and above %lld there are none",
        floor, (long long)INT64_MAX);
}

static bool check_schema(struct idem__pg_check *check)
{
    PGresult *result =
        row(check, "schema",
            "SELECT version, least, least <= 1,"
            " to_regclass('@.idem_record_due') IS NOT NULL, fence_floor,"
            " fence_floor > floor(extract(epoch FROM clock_timestamp())::float8"
            " * 1000::float8)::int8 + 366::int8 * 86400000::int8"
            " FROM @.idem_store");
    bool good;

    if (result == NULL) {
        return false;
    }
    good = is_yes(result, 2);
    check->code = IDEM_ECONFIG;
    if (!good) {
        idem__pg_tell(check, IDEM_GRADE_BAD, "schema", "update idem.",
                      "schema \"%s\" has version %.20s, which is too new for "
                      "this program",
                      check->place->schema, PQgetvalue(result, 0, 0));
    } else if (!is_yes(result, 3)) {
        idem__pg_tell(check, IDEM_GRADE_BAD, "schema",
                      "run what idem store template prints.",
                      "the index idem_record_due is missing: lists and purges "
                      "read the whole table");
    } else {
        idem__pg_tell(check, IDEM_GRADE_OK, "schema", NULL,
                      "schema \"%s\" has version %.20s", check->place->schema,
                      PQgetvalue(result, 0, 0));
    }
    if (good) {
        check->code = IDEM_ECORRUPT;
        check_floor(check, result);
    }
    PQclear(result);
    return good;
}

static void check_tables(struct idem__pg_check *check)
{
    if (idem__pg_check_rights(check) && check_schema(check)) {
        idem__pg_check_records(check);
    }
}

/* Runs all checks. Once the server fails to answer, the connection cannot ask any more. */
static void check_all(struct idem__pg_check *check)
{
    static void (*const parts[])(struct idem__pg_check *) = {
        check_server,   check_tls,   check_disk,
        check_replicas, check_clock, check_tables,
    };
    size_t i;

    for (i = 0; i < sizeof(parts) / sizeof(parts[0]) &&
                idem__pg_admin_answers(check->conn);
         i++) {
        parts[i](check);
    }
    if (!idem__pg_admin_answers(check->conn)) {
        idem__pg_tell(check, IDEM_GRADE_SKIP, "server", NULL,
                      "the rest was not checked");
    }
}

int idem_postgres_check(const char *place,
                        const struct idem_check_options *options,
                        idem_finding_fn *each, void *ctx,
                        struct idem_error *ret_error)
{
    struct idem__pg_place read;
    struct idem_error error = {0};
    struct idem__pg_check check = {
        .place = &read,
        .each = each,
        .ctx = ctx,
        .quick = options != NULL && options->quick,
        .options = options,
    };
    int rc;

    if (options != NULL && options->size != sizeof(*options)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "options: begin with IDEM_CHECK_OPTIONS_INIT");
    }
    rc = idem__pg_place_read(place, &read, &error);
    if (rc == IDEM_EINVALID || rc == IDEM_ENOMEM) {
        return idem__error(ret_error, rc, "%s", error.text);
    }
    rc = rc != 0 ? rc : idem__pg_admin_open(&read, &check.conn, &error);
    if (rc != 0) {
        check.code = rc;
        idem__pg_tell(&check, IDEM_GRADE_BAD, "server", NULL, "%s", error.text);
    } else {
        check_all(&check);
    }
    PQfinish(check.conn);
    idem__pg_place_finish(&read);
    return 0;
}
