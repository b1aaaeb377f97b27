/* The entries of an index as bytes that can be compared, hashed and kept. */
#include "base/bytes.h"
#include "store/sqlite/scan.h"

/* The order of the kinds is SQLite's (https://sqlite.org/datatype3.html, 4.1). */
enum tag {
    TAG_END = 0, /* Shorter is less. */
    TAG_NULL,
    TAG_INTEGER,
    TAG_TEXT,
    TAG_BLOB
};

#define SIGN (UINT64_C(1) << 63)

/* A zero byte is followed by 0xff, and the end by 0: so no value is the beginning of
 * another. */
static bool add_bytes(struct idem__scan_key *key, enum tag tag,
                      const uint8_t *bytes, size_t len)
{
    size_t i;

    if (key->len + 2 * len + 3 > sizeof(key->bytes)) {
        return false;
    }
    key->bytes[key->len++] = (uint8_t)tag;
    for (i = 0; i < len; i++) {
        key->bytes[key->len++] = bytes[i];
        if (bytes[i] == 0) {
            key->bytes[key->len++] = 0xff;
        }
    }
    key->bytes[key->len++] = 0;
    key->bytes[key->len++] = 0;
    return true;
}

static bool add(struct idem__scan_key *key, sqlite3_stmt *stmt, int column)
{
    int type = sqlite3_column_type(stmt, column);
    const uint8_t *bytes;

    if (type == SQLITE_INTEGER) {
        if (key->len + 9 > sizeof(key->bytes)) {
            return false;
        }
        key->bytes[key->len++] = TAG_INTEGER;
        idem__put_u64(key->bytes + key->len,
                      (uint64_t)sqlite3_column_int64(stmt, column) ^ SIGN);
        key->len += 8;
        return true;
    }
    if (type == SQLITE_NULL) {
        if (key->len + 1 > sizeof(key->bytes)) {
            return false;
        }
        key->bytes[key->len++] = TAG_NULL;
        return true;
    }
    bytes = sqlite3_column_blob(stmt, column); /* A real becomes text. */
    return add_bytes(key, type == SQLITE_BLOB ? TAG_BLOB : TAG_TEXT, bytes,
                     (size_t)sqlite3_column_bytes(stmt, column));
}

bool idem__scan_key_of(sqlite3_stmt *stmt, const int *columns, int n,
                       struct idem__scan_key *ret_key)
{
    int i;

    ret_key->len = 0;
    for (i = 0; i < n; i++) {
        if (!add(ret_key, stmt, columns[i])) {
            return false;
        }
    }
    return true;
}

/* Takes the bytes of a value from @from, which ends at @end, without what
 * add_bytes() has added. Returns what is after it; NULL: it has no end. */
static const uint8_t *take_bytes(const uint8_t *from, const uint8_t *end,
                                 uint8_t *to, size_t *ret_len)
{
    *ret_len = 0;
    while (from + 1 < end) {
        if (from[0] == 0 && from[1] == 0) {
            return from + 2;
        }
        to[(*ret_len)++] = from[0];
        from += from[0] == 0 ? 2 : 1;
    }
    return NULL;
}

int idem__scan_key_bind(sqlite3_stmt *stmt, const struct idem__scan_key *key,
                        int n)
{
    const uint8_t *from = key->bytes;
    const uint8_t *end = key->bytes + key->len;
    uint8_t buf[IDEM__SCAN_KEY_MAX];
    size_t len;
    int at;
    int rc = SQLITE_OK;

    for (at = 1; rc == SQLITE_OK && at <= n && from != NULL && from < end;
         at++) {
        uint8_t tag = *from++;

        if (tag == TAG_NULL) {
            rc = sqlite3_bind_null(stmt, at);
        } else if (tag == TAG_INTEGER && end - from >= 8) {
            rc = sqlite3_bind_int64(stmt, at,
                                    (int64_t)(idem__get_u64(from) ^ SIGN));
            from += 8;
        } else {
            from = take_bytes(from, end, buf, &len);
            rc = tag == TAG_BLOB
                     ? sqlite3_bind_blob(stmt, at, buf, (int)len,
                                         SQLITE_TRANSIENT)
                     : sqlite3_bind_text(stmt, at, (char *)buf, (int)len,
                                         SQLITE_TRANSIENT);
        }
    }
    return from == NULL ? SQLITE_MISMATCH : rc;
}

int idem__scan_key_compare(const struct idem__scan_key *a,
                           const struct idem__scan_key *b)
{
    int order = memcmp(a->bytes, b->bytes, a->len < b->len ? a->len : b->len);

    return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

/* Its sums must not cancel each other out by chance, and nobody chooses the entries
 * against it: a mixer of 64 bits will do (splitmix64,
 * https://prng.di.unimi.it/splitmix64.c). */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t idem__scan_key_hash(const struct idem__scan_key *key)
{
    uint64_t hash = key->len;
    size_t i;

    for (i = 0; i + 8 <= key->len; i += 8) {
        uint64_t word;

        memcpy(&word, key->bytes + i, sizeof(word));
        hash = mix(hash ^ word);
    }
    for (; i < key->len; i++) {
        hash = mix(hash ^ key->bytes[i]);
    }
    return hash;
}
