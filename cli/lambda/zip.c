/* Writing a zip file: local headers and data, then the directory of them. */
#include "lambda/deflate.h"
#include "lambda/package.h"
#include "text/error.h"
#include "text/exit_status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct entry {
    char *name;
    unsigned crc;
    unsigned packed_len;
    unsigned len;
    unsigned at;
    unsigned mode;
};

struct cli_zip {
    struct cli_zlib zlib;
    FILE *file;
    char *path;
    size_t at; /* How long the file is. */
    struct entry *entries;
    size_t len;
};

enum {
    LOCAL = 0x04034b50,
    CENTRAL = 0x02014b50,
    END = 0x06054b50,
    VERSION = 20,
    BY_UNIX = 3 << 8 | VERSION,
    NAMES_UTF8 = 1 << 11,
    DEFLATED = 8,
    DAY_ONE = 1 << 5 | 1, /* 1980-01-01. */
};

/* ---- zlib -------------------------------------------------------------- */

/* The packed bytes, for the caller to free; NULL: no memory. */
static void *pack(const struct cli_zlib *zlib, const void *bytes, size_t len,
                  size_t *ret_len)
{
    z_stream stream = {.next_in = NULL};
    size_t cap;
    void *to;

    if (zlib->init(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 9,
                   Z_DEFAULT_STRATEGY, ZLIB_VERSION,
                   (int)sizeof(stream)) != Z_OK) {
        return NULL;
    }
    cap = zlib->bound(&stream, (uLong)len);
    to = malloc(cap);
    if (to != NULL) {
        memcpy(&stream.next_in, &bytes, sizeof(bytes));
        stream.avail_in = (uInt)len;
        stream.next_out = to;
        stream.avail_out = (uInt)cap;
        if (zlib->deflate(&stream, Z_FINISH) != Z_STREAM_END) {
            free(to);
            to = NULL;
        }
    }
    *ret_len = stream.total_out;
    (void)zlib->end(&stream);
    return to;
}

/* ---- The file ---------------------------------------------------------- */

static void put(struct cli_zip *zip, const void *bytes, size_t len)
{
    (void)fwrite(bytes, 1, len, zip->file); /* Checked when it is closed. */
    zip->at += len;
}

static void put_16(struct cli_zip *zip, unsigned n)
{
    unsigned char bytes[2] = {(unsigned char)n, (unsigned char)(n >> 8)};

    put(zip, bytes, sizeof(bytes));
}

static void put_32(struct cli_zip *zip, unsigned n)
{
    put_16(zip, n & 0xffff);
    put_16(zip, n >> 16);
}

/* The fields that a local header and the directory have in common. */
static void put_facts(struct cli_zip *zip, const struct entry *entry)
{
    put_16(zip, VERSION);
    put_16(zip, NAMES_UTF8);
    put_16(zip, DEFLATED);
    put_16(zip, 0);
    put_16(zip, DAY_ONE);
    put_32(zip, entry->crc);
    put_32(zip, entry->packed_len);
    put_32(zip, entry->len);
    put_16(zip, (unsigned)strlen(entry->name));
    put_16(zip, 0);
}

static void put_central(struct cli_zip *zip, const struct entry *entry)
{
    put_32(zip, CENTRAL);
    put_16(zip, BY_UNIX);
    put_facts(zip, entry);
    put_16(zip, 0);
    put_16(zip, 0);
    put_16(zip, 0);
    put_32(zip, entry->mode << 16);
    put_32(zip, entry->at);
    put(zip, entry->name, strlen(entry->name));
}

struct cli_zip *cli_zip_create(const char *path)
{
    struct cli_zip *zip = calloc(1, sizeof(*zip));

    if (zip == NULL || (zip->path = strdup(path)) == NULL) {
        cli_say("out of memory");
        free(zip);
        return NULL;
    }
    if (cli_zlib_get(&zip->zlib)) {
        zip->file = fopen(path, "we");
        if (zip->file != NULL) {
            return zip;
        }
        cli_say("cannot write %s: %s", path, strerror(errno));
    }
    free(zip->path);
    free(zip);
    return NULL;
}

static struct entry *new_entry(struct cli_zip *zip, const char *name)
{
    struct entry *more =
        realloc(zip->entries, (zip->len + 1) * sizeof(*zip->entries));

    if (more == NULL) {
        return NULL;
    }
    zip->entries = more;
    more += zip->len;
    memset(more, 0, sizeof(*more));
    more->name = strdup(name);
    if (more->name != NULL) {
        zip->len++;
    }
    return more->name == NULL ? NULL : more;
}

bool cli_zip_add(struct cli_zip *zip, const char *name, const void *bytes,
                 size_t len, bool executable)
{
    struct entry *entry = NULL;
    void *packed = NULL;
    size_t packed_len;

    if (len <= 1u << 30 && zip->at <= 1u << 30 && zip->len < 10000) {
        packed = pack(&zip->zlib, bytes, len, &packed_len);
        entry = packed == NULL ? NULL : new_entry(zip, name);
    }
    if (entry == NULL) {
        free(packed);
        cli_say("%s does not fit into the package", name);
        return false;
    }
    entry->crc = (unsigned)zip->zlib.crc(0, bytes, (uInt)len);
    entry->packed_len = (unsigned)packed_len;
    entry->len = (unsigned)len;
    entry->at = (unsigned)zip->at;
    entry->mode = executable ? 0100755 : 0100644;
    put_32(zip, LOCAL);
    put_facts(zip, entry);
    put(zip, name, strlen(name));
    put(zip, packed, packed_len);
    free(packed);
    return true;
}

static void put_directory(struct cli_zip *zip)
{
    size_t from = zip->at;
    size_t i;
    size_t len;

    for (i = 0; i < zip->len; i++) {
        put_central(zip, &zip->entries[i]);
    }
    len = zip->at - from;
    put_32(zip, END);
    put_32(zip, 0);
    put_16(zip, (unsigned)zip->len);
    put_16(zip, (unsigned)zip->len);
    put_32(zip, (unsigned)len);
    put_32(zip, (unsigned)from);
    put_16(zip, 0);
}

int cli_zip_finish(struct cli_zip *zip, bool failed, size_t *ret_len)
{
    int status = 0;
    bool bad;
    size_t i;

    if (!failed) {
        put_directory(zip);
    }
    bad = ferror(zip->file) != 0;
    bad = fclose(zip->file) != 0 || bad;
    if (bad && !failed) {
        cli_say("cannot write %s: %s", zip->path, strerror(errno));
        status = CLI_OUTPUT_FAILED;
    }
    if (bad || failed) {
        (void)unlink(zip->path);
    }
    *ret_len = zip->at;
    for (i = 0; i < zip->len; i++) {
        free(zip->entries[i].name);
    }
    free(zip->entries);
    free(zip->path);
    free(zip);
    return status;
}
