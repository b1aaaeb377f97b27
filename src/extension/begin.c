/* Implements idem_begin() in SQL, as a function that returns a row.
 *
 *     SELECT verdict, token, result FROM idem_begin('order-42')
 *     WHERE scope = 'shop' AND retention_ms = 'never'
 *
 * A function in FROM is a virtual table without CREATE, and its arguments are hidden
 * columns: first the values in the parentheses, in their order, then the columns that
 * WHERE compares with "=". SQLite calls xBestIndex with the columns when it prepares
 * the statement, and xFilter with the values when it runs it: xFilter claims the key.
 *
 * xBestIndex does not see a comparison inside an expression, such as +scope = 'a':
 * SQLite evaluates it on the row, after the claim. So this refuses a statement that
 * uses an argument without giving it, and the row returns the values that were given.
 */
#include "core/error.h"
#include "extension/extension.h"
#include "store/sqlite/filesystem.h"

#include <idem/sqlite.h>
#include <stdarg.h>
#include <string.h>

enum column {
    VERDICT,
    TOKEN,
    RESULT,
    CONTENT_TYPE,
    META,
    STATUS,
    TEXT,
    INPUT,
    FENCE,
    ATTEMPTS,
    TAKEOVER,
    LEASE_LEFT_MS,

    /* The arguments. */
    KEY,
    SCOPE,
    FINGERPRINT,
    ON_EXPIRED_LEASE,
    RETENTION_MS,
    LEASE_MS,
    EXPECT_MS,
    ATTEMPTS_MAX,
    OWNER,
    KEEP_INPUT,
    NETWORK,
    COLUMNS,

    FIRST_ARGUMENT = KEY
};

static const char *const names[COLUMNS] = {
    [KEY] = "key",
    [SCOPE] = "scope",
    [FINGERPRINT] = "fingerprint",
    [ON_EXPIRED_LEASE] = "on_expired_lease",
    [RETENTION_MS] = "retention_ms",
    [LEASE_MS] = "lease_ms",
    [EXPECT_MS] = "expect_ms",
    [ATTEMPTS_MAX] = "attempts_max",
    [OWNER] = "owner",
    [KEEP_INPUT] = "keep_input",
    [NETWORK] = "network",
};

static const char declaration[] =
    "CREATE TABLE idem_begin (verdict TEXT, token TEXT, result BLOB, "
    "content_type TEXT, meta BLOB, status TEXT, text TEXT, input BLOB, "
    "fence INTEGER, attempts INTEGER, takeover INTEGER, lease_left_ms INTEGER, "
    "key HIDDEN, scope HIDDEN, fingerprint HIDDEN, on_expired_lease HIDDEN, "
    "retention_ms HIDDEN, lease_ms HIDDEN, expect_ms HIDDEN, "
    "attempts_max HIDDEN, owner HIDDEN, keep_input HIDDEN, network HIDDEN)";

struct table {
    sqlite3_vtab base;
    sqlite3 *db;
    bool checked; /* The file system of the database is known to be allowed. */
};

struct cursor {
    sqlite3_vtab_cursor base;
    sqlite3_value *given[COLUMNS]; /* The arguments. NULL: not given. */
    struct idem_attempt *attempt;  /* NULL: after the row. */
    char token[IDEM_TOKEN_MAX];
};

static struct table *table_of(sqlite3_vtab *base)
{
    return (struct table *)base;
}

static struct cursor *cursor_of(sqlite3_vtab_cursor *base)
{
    return (struct cursor *)base;
}

/* Sets the message of the virtual table, which SQLite makes the message of the
 * statement. */
static int fail(sqlite3_vtab *table, const struct idem_error *error)
{
    sqlite3_free(table->zErrMsg);
    table->zErrMsg = sqlite3_mprintf("idem_begin(): %s: %s",
                                     idem_error_name(error->code), error->text);
    return idem__argument_result_of(error->code);
}

static int refuse(sqlite3_vtab *table, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    sqlite3_free(table->zErrMsg);
    table->zErrMsg = sqlite3_vmprintf(format, args);
    va_end(args);
    return SQLITE_ERROR;
}

static int connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                   sqlite3_vtab **ret_table, char **ret_error)
{
    struct table *table;
    int rc = sqlite3_declare_vtab(db, declaration);

    (void)aux;
    (void)argc;
    (void)argv;
    (void)ret_error;
    if (rc == SQLITE_OK) {
        /* Views and triggers, which a hostile file may bring along, cannot call it. */
        rc = sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY);
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    table = sqlite3_malloc64(sizeof(*table));
    if (table == NULL) {
        return SQLITE_NOMEM;
    }
    memset(table, 0, sizeof(*table));
    table->db = db;
    *ret_table = &table->base;
    return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *base)
{
    sqlite3_free(base);
    return SQLITE_OK;
}

static int refuse_use(sqlite3_vtab *table, int column)
{
    return refuse(table,
                  "idem_begin(): %s is an argument: give it in the brackets, "
                  "or as WHERE %s = VALUE",
                  names[column], names[column]);
}

/* Finds the constraint of each argument, by column; -1: not given. The other
 * constraints stay with SQLite, which compares them with the row. */
static int find_arguments(sqlite3_vtab *base, const sqlite3_index_info *info,
                          int found[COLUMNS])
{
    int column;
    int i;

    for (column = 0; column < COLUMNS; column++) {
        found[column] = -1;
    }
    for (i = 0; i < info->nConstraint; i++) {
        column = info->aConstraint[i].iColumn;
        if (column < FIRST_ARGUMENT || column >= COLUMNS) {
            continue;
        }
        if (info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ) {
            return refuse_use(base, column);
        }
        if (!info->aConstraint[i].usable) {
            return SQLITE_CONSTRAINT; /* SQLite tries another order of the
                                         tables. */
        }
        if (found[column] >= 0) {
            return refuse(base, "idem_begin(): %s is given twice",
                          names[column]);
        }
        found[column] = i;
    }
    for (column = FIRST_ARGUMENT; column < COLUMNS; column++) {
        if (found[column] < 0 &&
            (info->colUsed & (sqlite3_uint64)1 << column) != 0) {
            return refuse_use(base, column);
        }
    }
    if (found[KEY] < 0) {
        return refuse(base,
                      "idem_begin(): no key given: FROM idem_begin('KEY')");
    }
    return SQLITE_OK;
}

/* Plans the call: idxNum has a bit for each argument that is given, and xFilter gets
 * their values in the order of the columns. */
static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    int found[COLUMNS];
    int rc = find_arguments(base, info, found);
    int given = 0;
    int column;

    if (rc != SQLITE_OK) {
        return rc;
    }
    info->idxNum = 0;
    for (column = FIRST_ARGUMENT; column < COLUMNS; column++) {
        if (found[column] >= 0) {
            info->aConstraintUsage[found[column]].argvIndex = ++given;
            info->aConstraintUsage[found[column]].omit = 1;
            info->idxNum |= 1 << (column - FIRST_ARGUMENT);
        }
    }
    info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    info->estimatedRows = 1;
    info->estimatedCost = 1;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **ret_cursor)
{
    struct cursor *cursor = sqlite3_malloc64(sizeof(*cursor));

    (void)base;
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    memset(cursor, 0, sizeof(*cursor));
    *ret_cursor = &cursor->base;
    return SQLITE_OK;
}

static void drop_row(struct cursor *cursor)
{
    int column;

    for (column = FIRST_ARGUMENT; column < COLUMNS; column++) {
        sqlite3_value_free(cursor->given[column]);
        cursor->given[column] = NULL;
    }
    idem_attempt_destroy(cursor->attempt);
    cursor->attempt = NULL;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    drop_row(cursor_of(base));
    sqlite3_free(base);
    return SQLITE_OK;
}

static int set_policy(struct idem_request *request, struct idem_slice name,
                      struct idem_error *error)
{
    if (name.len == 4 && memcmp(name.base, "hold", 4) == 0) {
        request->on_expired_lease = IDEM_HOLD;
        return 0;
    }
    if (name.len == 5 && memcmp(name.base, "rerun", 5) == 0) {
        request->on_expired_lease = IDEM_RERUN;
        return 0;
    }
    return idem__error(error, IDEM_EINVALID,
                       "on_expired_lease: give 'hold' or 'rerun'");
}

static int set_attempts_max(struct idem_request *request, sqlite3_value *value,
                            struct idem_error *error)
{
    int64_t number;
    int rc = idem__argument_ms("attempts_max", value, /* may_be_never= */ false,
                               &number, error);

    if (rc != 0) {
        return rc;
    }
    if (number > UINT32_MAX) {
        return idem__error(error, IDEM_EINVALID, "attempts_max: too large");
    }
    request->attempts_max = (uint32_t)number;
    return 0;
}

/* Sets one argument. NULL counts as not given. */
static int set_argument(struct idem_request *request, enum column column,
                        sqlite3_value *value, char digits[IDEM__DIGITS_MAX],
                        struct idem_error *error)
{
    if (sqlite3_value_type(value) == SQLITE_NULL) {
        return 0;
    }
    switch (column) {
    case KEY:
        request->key = idem__argument_bytes(value, digits);
        return 0;
    case SCOPE:
        request->scope = idem__argument_bytes(value, digits);
        return 0;
    case FINGERPRINT:
        request->fingerprint = idem__argument_bytes(value, digits);
        return 0;
    case OWNER:
        request->owner = idem__argument_bytes(value, digits);
        return 0;
    case KEEP_INPUT:
        request->input = idem__argument_bytes(value, digits);
        return 0;
    case ON_EXPIRED_LEASE:
        return set_policy(request, idem__argument_bytes(value, digits), error);
    case RETENTION_MS:
        return idem__argument_ms(names[column], value, /* may_be_never= */ true,
                                 &request->retention_ms, error);
    case LEASE_MS:
        return idem__argument_ms(names[column], value, /* may_be_never= */ true,
                                 &request->lease_ms, error);
    case EXPECT_MS:
        return idem__argument_ms(names[column], value,
                                 /* may_be_never= */ false, &request->expect_ms,
                                 error);
    case ATTEMPTS_MAX:
        return set_attempts_max(request, value, error);
    default:
        return 0;
    }
}

/* Refuses a network file system like a store does, unless the caller gives network =
 * 'yes'. */
static int check_place(struct table *table, sqlite3_value *network,
                       struct idem_error *error)
{
    const char *path = sqlite3_db_filename(table->db, "main");
    char digits[IDEM__DIGITS_MAX];
    struct idem_slice said = {NULL, 0};
    bool test;
    int rc = 0;

    if (network != NULL) {
        said = idem__argument_bytes(network, digits);
    }
    if (said.len != 0 && (said.len != 3 || memcmp(said.base, "yes", 3) != 0)) {
        return idem__error(error, IDEM_EINVALID,
                           "network: give 'yes', or leave it out");
    }
    if (said.len == 0 && !table->checked && path != NULL && path[0] != '\0') {
        rc = idem__filesystem_check(path, &test, error);
        table->checked = rc == 0;
    }
    return rc;
}

/* Keeps copies of the values, which best_index() marked in @given, as long as the
 * row. */
static int take_arguments(struct cursor *cursor, int given,
                          sqlite3_value **argv, struct idem_error *error)
{
    int column;

    for (column = FIRST_ARGUMENT; column < COLUMNS; column++) {
        if ((given & 1 << (column - FIRST_ARGUMENT)) != 0) {
            cursor->given[column] = sqlite3_value_dup(*argv++);
            if (cursor->given[column] == NULL) {
                return idem__error_plain(error, IDEM_ENOMEM);
            }
        }
    }
    return 0;
}

static int claim(struct table *table, struct cursor *cursor,
                 struct idem_error *error)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    char digits[COLUMNS][IDEM__DIGITS_MAX];
    int column;
    int rc;

    request.on_expired_lease = IDEM_HOLD;
    for (column = FIRST_ARGUMENT; column < COLUMNS; column++) {
        if (cursor->given[column] == NULL) {
            continue;
        }
        rc = set_argument(&request, (enum column)column, cursor->given[column],
                          digits[column], error);
        if (rc != 0) {
            return rc;
        }
    }
    rc = check_place(table, cursor->given[NETWORK], error);
    if (rc != 0) {
        return rc;
    }
    rc = idem_sqlite_begin_in(table->db, &request, &cursor->attempt, error);
    if (rc != 0) {
        return rc;
    }
    if (cursor->attempt->verdict == IDEM_STARTED &&
        idem_attempt_token(cursor->attempt, cursor->token) != 0) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    return 0;
}

static int filter(sqlite3_vtab_cursor *base, int given, const char *unused,
                  int argc, sqlite3_value **argv)
{
    struct cursor *cursor = cursor_of(base);
    struct idem_error error = {0};
    int rc;

    (void)unused;
    (void)argc;
    drop_row(cursor);
    rc = take_arguments(cursor, given, argv, &error);
    if (rc == 0) {
        rc = claim(table_of(base->pVtab), cursor, &error);
    }
    if (rc != 0) {
        drop_row(cursor);
        return fail(base->pVtab, &error);
    }
    return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base)
{
    drop_row(cursor_of(base));
    return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
    return cursor_of(base)->attempt == NULL;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_id)
{
    (void)base;
    *ret_id = 1;
    return SQLITE_OK;
}

/* An empty text becomes NULL. */
static void give_text(sqlite3_context *ctx, struct idem_slice text)
{
    if (text.len > 0) {
        sqlite3_result_text64(ctx, text.base, text.len, SQLITE_TRANSIENT,
                              SQLITE_UTF8);
    }
}

static void give_bytes(sqlite3_context *ctx, struct idem_slice bytes)
{
    if (bytes.len > 0) {
        sqlite3_result_blob64(ctx, bytes.base, bytes.len, SQLITE_TRANSIENT);
    }
}

static void give_name(sqlite3_context *ctx, const char *name)
{
    sqlite3_result_text(ctx, name, -1, SQLITE_STATIC);
}

/* A recorded outcome without bytes is an empty blob and not NULL, because there is an
 * outcome. */
static void give_result(sqlite3_context *ctx,
                        const struct idem_attempt *attempt)
{
    const struct idem_result *result = &attempt->record->result;

    if (attempt->verdict == IDEM_REPLAY && !result->not_kept &&
        result->bytes.len == 0) {
        sqlite3_result_zeroblob(ctx, 0);
    } else {
        give_bytes(ctx, result->bytes);
    }
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int n)
{
    const struct cursor *cursor = cursor_of(base);
    const struct idem_attempt *attempt = cursor->attempt;
    const struct idem_record *record = attempt->record;

    switch ((enum column)n) {
    case VERDICT:
        give_name(ctx, idem_verdict_name(attempt->verdict));
        break;
    case TOKEN:
        if (attempt->verdict == IDEM_STARTED) {
            sqlite3_result_text(ctx, cursor->token, -1, SQLITE_TRANSIENT);
        }
        break;
    case RESULT:
        give_result(ctx, attempt);
        break;
    case CONTENT_TYPE:
        give_text(ctx, record->result.content_type);
        break;
    case META:
        give_bytes(ctx, record->result.meta);
        break;
    case STATUS:
        give_name(ctx, idem_status_name(idem_record_status(record)));
        break;
    case TEXT:
        give_text(ctx, record->error.len > 0 ? record->error : record->note);
        break;
    case INPUT:
        give_bytes(ctx, record->input);
        break;
    case FENCE:
        sqlite3_result_int64(ctx, (sqlite3_int64)attempt->fence);
        break;
    case ATTEMPTS:
        sqlite3_result_int64(ctx, attempt->attempts);
        break;
    case TAKEOVER:
        sqlite3_result_int(ctx, attempt->takeover);
        break;
    case LEASE_LEFT_MS:
        sqlite3_result_int64(ctx, attempt->verdict == IDEM_STARTED
                                      ? idem_attempt_lease_left_ms(attempt)
                                      : attempt->lease_left_ms);
        break;
    default:
        if (cursor->given[n] != NULL) {
            sqlite3_result_value(ctx, cursor->given[n]);
        }
    }
    return SQLITE_OK;
}

/* Without xCreate it is only a function: CREATE VIRTUAL TABLE cannot use it. */
static const sqlite3_module module = {
    .xConnect = connect,
    .xBestIndex = best_index,
    .xDisconnect = disconnect,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next,
    .xEof = is_at_end,
    .xColumn = column,
    .xRowid = rowid,
};

int idem__extension_add_begin(sqlite3 *db)
{
    return sqlite3_create_module_v2(db, "idem_begin", &module, NULL, NULL);
}
