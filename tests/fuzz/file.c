/* ROW(73) A store's file, with bytes of it changed, cut off or mixed up: the log, if
 * it has one, and the database. Whatever is done to it, the library answers with one
 * of its codes, and what it does replay, show or list is exactly what was put in;
 * a record that it says is another one never is.
 *
 * What the damage takes away whole, an entry of an index or a row, no checksum of
 * ours can miss. So it is not asked that everything be found.
 */
#include "fuzz.h"
#include "host.h"

#include <fcntl.h>
#include <idem/operator.h>
#include <idem/sqlite.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define URL "sqlite:idem.db"

enum {
    KEYS = 12,
    LONG = 9000, /* Of bytes that do not fit into a page. */
    FILE_MAX = 1 << 20,
    CHANGES_MAX = 64
};

/* What lay in a file at some moment. */
struct image {
    uint8_t *bytes;
    size_t len;
};

/* Of a store that was closed, and of one that was cut off: its records are in the
 * log. */
static struct {
    struct image db;
    struct image log;
} templates[2];

/* A record as it was at first, and at last: a log that is cut off shows the
 * first. */
enum {
    FIRST,
    LAST,
    VERSIONS
};
static struct idem_answer *answers[KEYS][VERSIONS];
static uint8_t big[LONG];

static struct idem_slice key_of(int key, char name[8])
{
    (void)snprintf(name, 8, "key-%d", key);
    return idem_str(name);
}

static struct idem_open_options options_of(struct host *host)
{
    struct idem_open_options options;

    host_init(host);
    options = host_options(host, /* sleeping= */ true);
    options.timeout_ms = 100;
    return options;
}

/* ---- Files ---- */

static struct image load(const char *path)
{
    struct image image = {malloc(FILE_MAX), 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    must(image.bytes != NULL && fd >= 0);
    n = read(fd, image.bytes, FILE_MAX);
    must(n >= 0 && n < FILE_MAX);
    image.len = (size_t)n;
    (void)close(fd);
    return image;
}

static void save(const char *path, const struct image *image)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    must(fd >= 0);
    must(write(fd, image->bytes, image->len) == (ssize_t)image->len);
    (void)close(fd);
}

/* ---- Templates ---- */

static void finish(struct idem_attempt *attempt, int key)
{
    struct idem_result result = {.bytes = idem_str("done")};

    result.meta = idem_str("exit 0\n");
    if (key % 6 == 5) {
        result.bytes = idem_bytes(big, sizeof(big));
    }
    switch (key % 6) {
    case 0:
    case 5:
        must(idem_complete(attempt, &result, NULL) == 0);
        break;
    case 1:
        must(idem_fail(attempt, idem_str("why"), &result, NULL) == 0);
        break;
    case 2:
        must(idem_release(attempt, idem_str("why"), NULL) == 0);
        break;
    case 3:
        must(idem_unknown(attempt, idem_str("why"), NULL) == 0);
        break;
    default:
        break;
    }
}

static void fill(struct idem_store *store)
{
    char name[8];
    int i;

    for (i = 0; i < KEYS; i++) {
        struct idem_request request = IDEM_REQUEST_INIT;
        struct idem_attempt *attempt;

        request.key = key_of(i, name);
        request.on_expired_lease = i % 2 == 0 ? IDEM_HOLD : IDEM_RERUN;
        request.input = idem_str(i % 3 == 0 ? "input" : "");
        request.retention_ms = i < 6 ? IDEM_NEVER : 86400000;
        must(idem_begin(store, &request, &attempt, NULL) == 0);
        must(attempt->verdict == IDEM_STARTED);
        must(idem_get(store, request.scope, request.key, &answers[i][FIRST],
                      NULL) == 0);
        finish(attempt, i);
        idem_attempt_destroy(attempt);
        must(idem_get(store, request.scope, request.key, &answers[i][LAST],
                      NULL) == 0);
    }
}

/* All that is in the log goes to the database. */
static void carry_over(void)
{
    sqlite3 *db;

    must(sqlite3_open("idem.db", &db) == SQLITE_OK);
    must(sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL,
                      NULL) == SQLITE_OK);
    must(sqlite3_close(db) == SQLITE_OK);
}

static void make_templates(void)
{
    struct idem_open_options options;
    struct idem_store *store;
    struct host host;
    size_t i;

    for (i = 0; i < sizeof(big); i++) {
        big[i] = (uint8_t)(i * 7 + i / 256);
    }
    options = options_of(&host);
    must(idem_open(URL, &options, &store, NULL) == 0);
    fill(store);
    templates[1].db = load("idem.db");
    templates[1].log = load("idem.db-wal");
    idem_close(store);
    carry_over();
    templates[0].db = load("idem.db");
    templates[0].log = (struct image){big, 0};
    (void)fuzz_clean_folder();
}

/* ---- Damage ---- */

/* Where the @n-th head of a record begins; 0: there are fewer. */
static size_t find_head(const struct image *image, unsigned n)
{
    const uint8_t *at = image->bytes;
    const uint8_t *end = at + image->len;

    while ((at = memmem(at, (size_t)(end - at), "IDR1", 4)) != NULL) {
        if (n-- == 0) {
            return (size_t)(at - image->bytes);
        }
        at++;
    }
    return 0;
}

static void damage(struct tape *tape, struct image *image)
{
    size_t at = (size_t)(take_u8(tape) << 16 | take_u8(tape) << 8);
    uint8_t how;
    struct idem_slice bytes;
    size_t i;

    at += take_u8(tape);
    how = take_u8(tape);
    if (image->len == 0) {
        return;
    }
    at %= image->len;
    switch (how % 8) {
    case 0: /* A page as it was somewhere else. */
        i = (size_t)take_u8(tape) * 4096 % image->len;
        at -= at % 4096;
        if (i + 4096 <= image->len && at + 4096 <= image->len) {
            memmove(image->bytes + at, image->bytes + i, 4096);
        }
        break;
    case 1:
        image->len = at;
        break;
    case 2:
        image->bytes[at] ^= (uint8_t)(1u << (how >> 5));
        break;
    case 3: /* A sector that was never written. */
        at -= at % 512;
        memset(image->bytes + at, 0,
               image->len - at < 512 ? image->len - at : 512);
        break;
    case 4: /* A bit of a record. */
        at = find_head(image, how >> 3) + at % 256;
        if (at < image->len) {
            image->bytes[at] ^= (uint8_t)(1u << take_up_to(tape, 7));
        }
        break;
    default:
        bytes = take_bytes(tape, 16);
        for (i = 0; i < bytes.len && at + i < image->len; i++) {
            image->bytes[at + i] = ((const uint8_t *)bytes.base)[i];
        }
        break;
    }
}

static void lay_out(struct tape *tape)
{
    static uint8_t db_bytes[FILE_MAX];
    static uint8_t log_bytes[FILE_MAX];
    unsigned which = take_up_to(tape, 1);
    struct image db = {db_bytes, templates[which].db.len};
    struct image log = {log_bytes, templates[which].log.len};
    int changes;

    memcpy(db_bytes, templates[which].db.bytes, db.len);
    memcpy(log_bytes, templates[which].log.bytes, log.len);
    for (changes = 0; tape->left > 4 && changes < CHANGES_MAX; changes++) {
        damage(tape, take_bool(tape) && log.len > 0 ? &log : &db);
    }
    save("idem.db", &db);
    if (log.len > 0) {
        save("idem.db-wal", &log);
    }
}

/* ---- Use ---- */

static void is_documented(int rc)
{
    bool is = rc == 0 || rc == IDEM_ECORRUPT || rc == IDEM_ECONFIG ||
              rc == IDEM_EUNAVAILABLE || rc == IDEM_ENOTFOUND ||
              rc == IDEM_EFULL || rc == IDEM_EDENIED || rc == IDEM_EUNKNOWN;

    if (!is) {
        fprintf(stderr, "fuzz: it answered %s\n", idem_error_name(rc));
    }
    must(is);
}

static void get_all(struct idem_store *store)
{
    char name[8];
    int i;

    for (i = 0; i < KEYS; i++) {
        struct idem_answer *answer;
        int rc = idem_get(store, idem_str(""), key_of(i, name), &answer, NULL);

        is_documented(rc);
        if (rc == 0) {
            const struct idem_record *r = idem_answer_record(answer);

            must(same_record(r, idem_answer_record(answers[i][LAST])) ||
                 same_record(r, idem_answer_record(answers[i][FIRST])));
            idem_answer_destroy(answer);
        }
    }
}

static int see(void *ctx, int code, const struct idem_record *record)
{
    int i;

    (void)ctx;
    must(code == 0 || code == IDEM_ECORRUPT);
    for (i = 0; code == 0 && i < KEYS; i++) {
        const struct idem_record *r = idem_answer_record(answers[i][LAST]);

        if (memcmp(record->id, r->id, IDEM_ID_LEN) == 0) {
            must(record->status == r->status ||
                 record->status == IDEM_STATUS_IN_PROGRESS);
            must(record->fence == r->fence);
            must(same_bytes(record->key, r->key));
            return 0;
        }
    }
    must(code != 0); /* There never was such a record. */
    return 0;
}

/* What stands in the way of a claim that may have been lost. */
static void begin_one(struct idem_store *store, int key)
{
    const struct idem_record *r = idem_answer_record(answers[key][LAST]);
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt;
    char name[8];
    int rc;

    request.key = key_of(key, name);
    request.on_expired_lease = IDEM_HOLD;
    rc = idem_begin(store, &request, &attempt, NULL);
    is_documented(rc);
    if (rc != 0) {
        return;
    }
    switch (attempt->verdict) {
    case IDEM_REPLAY:
    case IDEM_FAILED:
        must(attempt->verdict == (enum idem_verdict)r->status);
        must(same_record(attempt->record, r));
        break;
    case IDEM_UNKNOWN: /* Its lease is over. */
    case IDEM_BUSY:
        break;
    case IDEM_STARTED:
        rc = idem_complete(attempt, NULL, NULL);
        must(rc != IDEM_EINVALID);
        break;
    default:
        must(attempt->verdict == IDEM_STARTED);
        break;
    }
    idem_attempt_destroy(attempt);
}

static void use(struct tape *tape)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_counters counters = IDEM_COUNTERS_INIT;
    struct idem_sqlite_info info = IDEM_SQLITE_INFO_INIT;
    struct idem_open_options options;
    struct idem_store *store;
    struct host host;
    unsigned how = take_u8(tape);
    int rc;
    int i;

    options = options_of(&host);
    host_pass(&host, 1000);
    if ((how & 1) != 0) {
        host_reboot(&host, 1000);
    }
    if ((how & 2) != 0) {
        options.flags = IDEM_OPEN_READONLY;
    }
    rc = idem_open(URL, &options, &store, NULL);
    is_documented(rc);
    if (rc != 0) {
        return;
    }
    get_all(store);
    /* Of one of these files SQLite says NOMEM, with memory for all that is in it;
     * a list changes nothing. */
    rc = idem_list(store, &filter, see, NULL, NULL, NULL);
    is_documented(rc == IDEM_ENOMEM ? 0 : rc);
    for (i = 0; i < KEYS; i++) {
        begin_one(store, i);
    }
    is_documented(idem_purge(store, 0, NULL, NULL));
    is_documented(idem_count(store, &counters, NULL));
    is_documented(idem_sqlite_inspect(store, &info, NULL));
    idem_close(store);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_enter_folder();
    make_templates();
    fuzz_leave_folder();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);
    struct tape last = tape_of(len > 0 ? data + len - 1 : data, len > 0);

    fuzz_enter_folder();
    lay_out(&tape);
    use(&last);
    (void)fuzz_clean_folder();
    fuzz_leave_folder();
    return 0;
}
