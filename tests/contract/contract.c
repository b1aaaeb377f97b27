/* The stores under test, and access to their stored bytes. */
#include "contract.h"

#include "base/bytes.h"
#include "contract/store.h"
#include "database.h"
#include "db.h"
#include "heap.h"
#include "table.h"
#include "temp.h"

#include <idem/operator.h>
#include <sqlite3.h>

static const struct traits all_traits[] = {
    {.name = "memory",
     .at_once = true,
     .keeps_counters = false,
     .other_boot_ms = 5000},
    {.name = "sqlite",
     .durable = true,
     .file = true,
     .keeps_counters = true,
     .other_boot_ms = 5000},
    {.name = "dynamodb",
     .durable = true,
     .unordered = true,
     .forgets_fences = true,
     .purge_lag_ms = (int64_t)2 * 3600 * 1000,
     .other_boot_ms = 2000},
    {.name = "postgres",
     .durable = true,
     .postgres = true,
     .unordered = true,
     .other_boot_ms = 2000},
#define LAYOUT_AS(word, settings)                                              \
    {                                                                          \
        .name = "dynamodb-" word, .layout = settings, .durable = true,         \
        .unordered = true, .forgets_fences = true,                             \
        .purge_lag_ms = (int64_t)2 * 3600 * 1000, .other_boot_ms = 2000        \
    }
#define LAYOUT(word) LAYOUT_AS(word, word)
    LAYOUT("powertools-python"),
    LAYOUT("powertools-typescript"),
    LAYOUT("lock-token"),
    LAYOUT("idempotency-store"),
    LAYOUT("http-idempotency"),
    /* Every attribute has another name, and the key of a record is a sort key. */
    LAYOUT_AS("named", "powertools-typescript&key-attr=pk&sort-key-attr=sk"
                       "&static-pk-value=idempotency%23pay&status-attr=state"
                       "&expiry-attr=until&in-progress-expiry-attr=lock"
                       "&data-attr=body"),
#undef LAYOUT
#undef LAYOUT_AS
};

const struct traits *traits(void)
{
    size_t i;

    for (i = 0; test_argument != NULL && i < COUNT(all_traits); i++) {
        if (strcmp(all_traits[i].name, test_argument) == 0) {
            return &all_traits[i];
        }
    }
    fail_with("name a store: memory, sqlite, dynamodb, dynamodb-LAYOUT, "
              "postgres");
    return NULL;
}

bool is_durable(void)
{
    return traits()->durable;
}

static bool is_table(void)
{
    return traits()->durable && !traits()->file;
}

const char *new_place(const char *name)
{
    if (!is_durable()) {
        return NULL;
    }
    if (traits()->postgres) {
        return database_new();
    }
    return is_table() ? table_new() : temp_path(name);
}

const char *url_of(const struct fixture *f)
{
    static char url[600];

    (void)snprintf(url, sizeof(url), "%s:%s",
                   traits()->layout == NULL ? test_argument : "dynamodb",
                   f->path == NULL ? "" : f->path);
    return url;
}

enum {
    TIMEOUT_MS = 60000 /* A busy machine answers the last of a thousand late. */
};

static struct idem_store *open_at(struct fixture *f,
                                  const struct idem_open_options *options)
{
    struct idem_store *store;

    assert_ok(idem_open(url_of(f), options, &store, &why));
    return store;
}

void open_again(struct fixture *f)
{
    f->store = open_at(f, &f->options);
}

static void open_empty(struct fixture *f)
{
    f->path = new_place("idem.db");
    open_again(f);
}

void open_virtual(struct fixture *f)
{
    host_init(&f->host);
    f->options = host_options(&f->host, true);
    f->options.timeout_ms = TIMEOUT_MS;
    /* A service has a clock that nobody sets. */
    f->host.kept_right = is_table();
    open_empty(f);
}

void open_real(struct fixture *f)
{
    static const struct idem_open_options standard = IDEM_OPEN_OPTIONS_INIT;

    host_init(&f->host);
    f->options = standard;
    f->options.timeout_ms = TIMEOUT_MS;
    open_empty(f);
}

void finish(struct fixture *f)
{
    idem_close(f->store);
    f->store = NULL;
}

struct idem_store *handle_open(struct fixture *f,
                               const struct idem_open_options *options)
{
    return is_durable() ? open_at(f, options) : f->store;
}

void handle_close(struct fixture *f, struct idem_store *store)
{
    if (store != f->store) {
        idem_close(store);
    }
}

/* ---- Requests and what they meet ---- */

int call_verb(int verb, struct idem_attempt *attempt)
{
    switch (verb) {
    case 0:
        return complete(attempt, "verb");
    case 1:
        return idem_fail(attempt, idem_str("verb"), NULL, &why);
    case 2:
        return idem_release(attempt, idem_str("verb"), &why);
    case 3:
        return idem_unknown(attempt, idem_str("verb"), &why);
    default:
        return idem_renew(attempt, 0, &why);
    }
}

enum idem_status status_of(struct idem_store *store, const char *key)
{
    return get(store, key)->status;
}

uint64_t fence_of(struct idem_store *store, const char *key)
{
    return get(store, key)->fence;
}

static int count_one(void *ctx, int code, const struct idem_record *record)
{
    size_t *n = ctx;

    (void)code;
    (void)record;
    (*n)++;
    return 0;
}

size_t count(struct idem_store *store, const struct idem_filter *filter)
{
    struct idem_filter all = IDEM_FILTER_INIT;
    size_t n = 0;

    assert_ok(idem_list(store, filter == NULL ? &all : filter, count_one, &n,
                        NULL, &why));
    return n;
}

int64_t store_ms(struct idem_store *store)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    int64_t ms = 0;
    size_t n = 0;

    filter.max = 1;
    assert_ok(idem_list(store, &filter, count_one, &n, &ms, &why));
    return ms;
}

/* ---- What lies stored: in memory ---- */

/* The store in memory keeps key, head, result and input in one block. */
static uint8_t *memory_part(const char *key, enum part part, size_t *ret_len)
{
    char start[300];
    size_t block_len;
    uint8_t *head;
    size_t head_len;

    (void)snprintf(start, sizeof(start), "%sIDR1", key);
    head = heap_find(start, strlen(start), &block_len);
    if (head == NULL) {
        fail_with("no record of %s lies in memory", key);
    }
    head += strlen(key);
    head_len = 184 + idem__get_u32(head + 20) + 16;
    switch (part) {
    case RESULT:
        *ret_len = idem__get_u64(head + 168);
        return head + head_len;
    case INPUT:
        *ret_len = idem__get_u64(head + 176);
        return head + head_len + idem__get_u64(head + 168);
    case HEAD:
        break;
    }
    *ret_len = head_len;
    return head;
}

/* ---- What lies stored: in SQLite ---- */

static sqlite3 *open_db(struct fixture *f)
{
    sqlite3 *db = db_open(f->path);

    /* Our commits need not reach the disk. */
    (void)sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return db;
}

void stored_sql(struct fixture *f, const char *sql)
{
    sqlite3 *db = open_db(f);

    db_run(db, sql);
    (void)sqlite3_close(db);
}

int64_t stored_number(struct fixture *f, const char *sql)
{
    sqlite3 *db = open_db(f);
    int64_t number = db_number(db, sql);

    (void)sqlite3_close(db);
    return number;
}

/* A statement about one part of @key's row, whose id is its first parameter. */
static sqlite3_stmt *statement(sqlite3 *db, const char *key, enum part part,
                               bool write)
{
    static const char *const columns[] = {"head", "result", "input"};
    sqlite3_stmt *stmt = NULL;
    uint8_t id[IDEM_ID_LEN];
    char sql[128];

    assert_ok(idem_id(idem_str(""), idem_str(key), id));
    (void)snprintf(sql, sizeof(sql),
                   write ? "UPDATE idem_record SET %s = ?2 WHERE id = ?1"
                         : "SELECT %s FROM idem_record WHERE id = ?1",
                   columns[part]);
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        fail_with("%s: %s", sql, sqlite3_errmsg(db));
    }
    (void)sqlite3_bind_blob(stmt, 1, id, sizeof(id), SQLITE_TRANSIENT);
    return stmt;
}

size_t stored_read(struct fixture *f, const char *key, enum part part,
                   uint8_t *buf, size_t cap)
{
    sqlite3_stmt *stmt;
    sqlite3 *db;
    size_t len;

    if (traits()->postgres) {
        return database_read(f->path, key, part, buf, cap);
    }
    if (is_table()) {
        return table_part_read(f->path, key, part, buf, cap);
    }
    if (!is_durable()) {
        const uint8_t *bytes = memory_part(key, part, &len);

        assert_true(len <= cap);
        if (len > 0) {
            memcpy(buf, bytes, len);
        }
        return len;
    }
    db = open_db(f);
    stmt = statement(db, key, part, /* write= */ false);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    len = (size_t)sqlite3_column_bytes(stmt, 0);
    assert_true(len <= cap);
    if (len > 0) {
        memcpy(buf, sqlite3_column_blob(stmt, 0), len);
    }
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return len;
}

void stored_write(struct fixture *f, const char *key, enum part part,
                  const uint8_t *bytes, size_t len)
{
    sqlite3_stmt *stmt;
    sqlite3 *db;

    if (traits()->postgres) {
        database_write(f->path, key, part, bytes, len);
        return;
    }
    if (is_table()) {
        table_part_write(f->path, key, part, bytes, len);
        return;
    }
    if (!is_durable()) {
        size_t have;
        uint8_t *to = memory_part(key, part, &have);

        assert_int_equal(have, len);
        if (len > 0) {
            memcpy(to, bytes, len);
        }
        return;
    }
    db = open_db(f);
    stmt = statement(db, key, part, /* write= */ true);
    (void)sqlite3_bind_blob(stmt, 2, bytes, (int)len, SQLITE_TRANSIENT);
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
}
