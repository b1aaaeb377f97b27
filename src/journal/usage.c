/* How much a journal holds, without counting it each time. */
#include "journal/usage.h"

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/host.h"
#include "core/error.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    AT_VERSION = 4,
    AT_STATE = 6,
    AT_BYTES = 8,
    AT_BOOT_ID = 16,
    AT_COUNTED_MS = 32,
    AT_PART = 42,
    AT_AFTER = 44,
    AT_DURABLE = 88,
    AT_FILES = 120,
    AT_CRC = AT_FILES + 4 * IDEM__JOURNAL_PARTS,
    FILE_LEN = AT_CRC + 4,

    VERSION = 1,
    COUNTED = 1,
    COUNTING = 2,

    LOCK_MS = 100,             /* One that holds it longer is stopped. */
    COUNT_TIME_MS = 60 * 1000, /* One that counts longer is dead. */
    COUNT_AGAIN_MS = 10 * 1000,
};

static const uint8_t magic[4] = {'I', 'D', 'J', 'U'};

/* ---- The file ---- */

static void decode(const uint8_t *p, const uint8_t boot_id[16],
                   struct idem__usage *u)
{
    bool ours = memcmp(p + AT_BOOT_ID, boot_id, 16) == 0;
    unsigned state = p[AT_STATE + 1];
    unsigned i;

    memcpy(u->durable, p + AT_DURABLE, sizeof(u->durable));
    u->part = (uint16_t)(p[AT_PART] << 8 | p[AT_PART + 1]);
    memcpy(u->after, p + AT_AFTER, IDEM__ENTRY_NAME_LEN);
    if (u->part >= IDEM__JOURNAL_PARTS) {
        u->part = 0;
    }
    u->counted = ours && state == COUNTED;
    u->counting = ours && state == COUNTING;
    if (!u->counted && !u->counting) {
        return;
    }
    u->bytes = idem__get_u64(p + AT_BYTES);
    u->counted_ms = (int64_t)idem__get_u64(p + AT_COUNTED_MS);
    for (i = 0; i < IDEM__JOURNAL_PARTS; i++) {
        u->files[i] = idem__get_u32(p + AT_FILES + 4 * (size_t)i);
    }
}

static void encode(const struct idem__usage *u, const uint8_t boot_id[16],
                   uint8_t p[FILE_LEN])
{
    unsigned state = u->counting ? COUNTING : u->counted ? COUNTED : 0;
    unsigned i;

    memset(p, 0, FILE_LEN);
    memcpy(p, magic, sizeof(magic));
    p[AT_VERSION + 1] = VERSION;
    p[AT_STATE + 1] = (uint8_t)state;
    idem__put_u64(p + AT_BYTES, u->bytes);
    memcpy(p + AT_BOOT_ID, boot_id, 16);
    idem__put_u64(p + AT_COUNTED_MS, (uint64_t)u->counted_ms);
    p[AT_PART] = (uint8_t)(u->part >> 8);
    p[AT_PART + 1] = (uint8_t)u->part;
    memcpy(p + AT_AFTER, u->after, strnlen(u->after, IDEM__ENTRY_NAME_LEN));
    memcpy(p + AT_DURABLE, u->durable, sizeof(u->durable));
    for (i = 0; i < IDEM__JOURNAL_PARTS; i++) {
        idem__put_u32(p + AT_FILES + 4 * (size_t)i, u->files[i]);
    }
    idem__put_u32(p + AT_CRC, idem__crc32(0, idem_bytes(p, AT_CRC)));
}

/* The file while it is locked, and the time. */
struct ledger {
    int fd;
    bool busy; /* Another process has it, and is stopped. */
    struct idem_clock_reading now;
    struct idem__usage usage;
};

static void read_clock(struct idem_clock_reading *ret_now)
{
    struct idem_host host = {.ctx = NULL};

    idem__host_default(&host);
    if (host.clock(host.ctx, ret_now) != 0) {
        memset(ret_now, 0, sizeof(*ret_now));
    }
}

/* An outcome must not wait for a process that was stopped while it had the lock:
 * then it is not counted. */
static bool lock(int fd)
{
    int64_t until_ms = idem__mono_ms() + LOCK_MS;

    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if ((errno != EWOULDBLOCK && errno != EINTR) ||
            idem__mono_ms() >= until_ms) {
            return false;
        }
        (void)poll(NULL, 0, 1);
    }
    return true;
}

static void load(struct ledger *l)
{
    uint8_t p[FILE_LEN];

    memset(&l->usage, 0, sizeof(l->usage));
    if (pread(l->fd, p, sizeof(p), 0) == (ssize_t)sizeof(p) &&
        memcmp(p, magic, sizeof(magic)) == 0 && p[AT_VERSION] == 0 &&
        p[AT_VERSION + 1] == VERSION &&
        idem__get_u32(p + AT_CRC) == idem__crc32(0, idem_bytes(p, AT_CRC))) {
        decode(p, l->now.boot_id, &l->usage);
    }
}

/* True: it is open, locked and read, and to be closed. */
static bool open_ledger(int directory, bool make, struct ledger *l)
{
    struct stat st;

    memset(l, 0, sizeof(*l));
    l->fd = openat(directory, IDEM__JOURNAL_USAGE,
                   O_RDWR | (make ? O_CREAT : 0) | O_NOFOLLOW | O_NONBLOCK |
                       O_CLOEXEC,
                   0600);
    if (l->fd < 0) {
        return false;
    }
    if (fstat(l->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        goto err_after_open;
    }
    if (!lock(l->fd)) {
        l->busy = true;
        goto err_after_open;
    }
    read_clock(&l->now);
    load(l);
    return true;

err_after_open:
    (void)close(l->fd);
    return false;
}

/* Where it cannot be written the next reader finds what was there, or a checksum
 * that is wrong: at worst it counts. */
static void save(const struct ledger *l)
{
    uint8_t p[FILE_LEN];

    encode(&l->usage, l->now.boot_id, p);
    (void)!pwrite(l->fd, p, sizeof(p), 0);
}

static void close_ledger(const struct ledger *l)
{
    (void)close(l->fd);
}

/* ---- Counting ---- */

uint64_t idem__usage_files(const struct idem__usage *usage)
{
    uint64_t sum = 0;
    unsigned i;

    for (i = 0; i < IDEM__JOURNAL_PARTS; i++) {
        sum += usage->files[i];
    }
    return sum;
}

struct count {
    const struct idem_journal *journal;
    struct idem__usage *usage;
    unsigned part;
};

static int count_file(void *ctx, const char *name, struct idem_error *error)
{
    struct count *count = ctx;
    struct stat st;

    (void)error;
    if (fstatat(count->journal->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        count->usage->files[count->part]++;
        count->usage->bytes += (uint64_t)st.st_size;
    }
    return 0;
}

/* Adds all files to @usage. */
static int count_all(const struct idem_journal *journal,
                     struct idem__usage *usage, struct idem_error *error)
{
    struct count count = {.journal = journal, .usage = usage};
    bool there[IDEM__JOURNAL_PARTS];
    int rc = idem__journal_parts(journal, there, error);

    for (; rc == 0 && count.part < IDEM__JOURNAL_PARTS; count.part++) {
        if (there[count.part]) {
            rc = idem__journal_walk(journal, count.part, count_file, &count,
                                    error);
        }
    }
    return rc;
}

/* In percent of what the journal may hold, with one file of @more bytes. */
static uint64_t level(const struct idem_journal *journal,
                      const struct idem__usage *usage, uint64_t more)
{
    uint64_t files = idem__usage_files(usage);
    uint64_t bytes = usage->bytes + more;

    if (files >= journal->entries_max || bytes > journal->bytes_max) {
        return 101;
    }
    files = files * 100 / journal->entries_max;
    bytes = (uint64_t)((double)bytes / (double)journal->bytes_max * 100);
    return files > bytes ? files : bytes;
}

/* Whether the numbers are to be found out first: by one process at a time, and
 * once more where a person would be told of them. */
static bool wants_count(const struct idem_journal *journal,
                        const struct ledger *l, uint64_t more)
{
    const struct idem__usage *u = &l->usage;
    int64_t age_ms = l->now.boot_ms - u->counted_ms;

    if (u->counting) {
        return age_ms < 0 || age_ms > COUNT_TIME_MS;
    }
    return !u->counted ||
           (age_ms > COUNT_AGAIN_MS &&
            level(journal, u, more) >= IDEM_JOURNAL_TOLD_PERCENT);
}

/* Counts without the lock: what others add meanwhile is added to it, once more
 * if it was seen. */
static int count_again(const struct idem_journal *journal, struct ledger *l,
                       struct idem_error *error)
{
    struct idem__usage found = {.bytes = 0};
    unsigned i;
    int rc;

    memset(l->usage.files, 0, sizeof(l->usage.files));
    l->usage.bytes = 0;
    l->usage.counting = true;
    l->usage.counted_ms = l->now.boot_ms;
    save(l);
    close_ledger(l);
    rc = count_all(journal, &found, error);
    if (!open_ledger(journal->fd, /* make= */ true, l)) {
        l->fd = -1;
        return rc;
    }
    for (i = 0; i < IDEM__JOURNAL_PARTS; i++) {
        l->usage.files[i] += found.files[i];
    }
    l->usage.bytes += found.bytes;
    l->usage.counted = rc == 0;
    l->usage.counting = false;
    l->usage.counted_ms = l->now.boot_ms;
    save(l);
    return rc;
}

static int check_level(const struct idem_journal *journal,
                       const struct idem__usage *u, uint64_t more,
                       struct idem_error *error)
{
    if (level(journal, u, more) <= 100) {
        return 0;
    }
    return idem__error(
        error, IDEM_EFULL,
        "the journal is full (idem reconcile makes room): %.120s "
        "holds %llu of %llu outcomes, %llu of %llu bytes",
        journal->directory, (unsigned long long)idem__usage_files(u),
        (unsigned long long)journal->entries_max, (unsigned long long)u->bytes,
        (unsigned long long)journal->bytes_max);
}

/* Where the record cannot be kept. */
static int check_by_counting(const struct idem_journal *journal, uint64_t more,
                             struct idem_error *error)
{
    struct idem__usage found = {.bytes = 0};
    int rc = count_all(journal, &found, error);

    return rc == 0 ? check_level(journal, &found, more, error) : rc;
}

/* ---- The verbs ---- */

static bool has_bit(const uint8_t *bits, unsigned n)
{
    return n < 256 && (bits[n / 8] & 1U << n % 8) != 0;
}

int idem__usage_add(const struct idem_journal *journal, unsigned part,
                    uint64_t len, bool *ret_durable, struct idem_error *error)
{
    struct ledger l;
    int rc = 0;

    *ret_durable = false;
    if (!open_ledger(journal->fd, /* make= */ true, &l)) {
        return l.busy ? 0 : check_by_counting(journal, len, error);
    }
    if (wants_count(journal, &l, len)) {
        rc = count_again(journal, &l, error);
        if (l.fd < 0) {
            return rc;
        }
    }
    if (rc == 0 && l.usage.counted) {
        rc = check_level(journal, &l.usage, len, error);
    }
    if (rc == 0) {
        *ret_durable = has_bit(l.usage.durable, part);
        l.usage.files[part]++;
        l.usage.bytes += len;
        save(&l);
    }
    close_ledger(&l);
    return rc;
}

void idem__usage_take_off(int directory, unsigned part, uint64_t len)
{
    struct idem__usage *u;
    struct ledger l;

    if (!open_ledger(directory, /* make= */ false, &l)) {
        return;
    }
    u = &l.usage;
    u->files[part] -= u->files[part] > 0;
    u->bytes -= u->bytes < len ? u->bytes : len;
    if (u->counted && idem__usage_files(u) == 0) {
        u->bytes = 0;
    }
    save(&l);
    close_ledger(&l);
}

void idem__usage_set_durable(int directory, unsigned part)
{
    struct ledger l;

    if (part < 256 && open_ledger(directory, /* make= */ false, &l)) {
        l.usage.durable[part / 8] |= (uint8_t)(1U << part % 8);
        save(&l);
        close_ledger(&l);
    }
}

void idem__usage_set_stop(int directory, unsigned part, const char *after)
{
    struct ledger l;

    if (open_ledger(directory, /* make= */ true, &l)) {
        l.usage.part = (uint16_t)part;
        memset(l.usage.after, 0, sizeof(l.usage.after));
        memcpy(l.usage.after, after, strnlen(after, IDEM__ENTRY_NAME_LEN));
        save(&l);
        close_ledger(&l);
    }
}

void idem__usage_read(int directory, struct idem__usage *ret_usage)
{
    struct ledger l;

    memset(ret_usage, 0, sizeof(*ret_usage));
    if (open_ledger(directory, /* make= */ false, &l)) {
        *ret_usage = l.usage;
        close_ledger(&l);
    }
}

int idem_journal_read_usage(struct idem_journal *journal,
                            struct idem_journal_usage *ret_usage,
                            struct idem_error *ret_error)
{
    struct idem__usage found = {.bytes = 0};
    struct ledger l = {.fd = -1};
    int rc = idem__journal_check(journal, ret_error);

    if (rc == 0 && ret_usage->size != sizeof(*ret_usage)) {
        rc = idem__error(ret_error, IDEM_EINVALID,
                         "usage: begin with IDEM_JOURNAL_USAGE_INIT");
    }
    if (rc != 0) {
        return rc;
    }
    if (open_ledger(journal->fd, /* make= */ false, &l)) {
        if (wants_count(journal, &l, 0)) {
            rc = count_again(journal, &l, ret_error);
        }
        if (l.fd >= 0) {
            found = l.usage;
            close_ledger(&l);
        }
    }
    if (rc == 0 && !found.counted) {
        memset(&found, 0, sizeof(found));
        rc = count_all(journal, &found, ret_error);
    }
    if (rc == 0) {
        ret_usage->entries = idem__usage_files(&found);
        ret_usage->bytes = found.bytes;
        ret_usage->entries_max = journal->entries_max;
        ret_usage->bytes_max = journal->bytes_max;
        ret_usage->near =
            level(journal, &found, 0) >= IDEM_JOURNAL_TOLD_PERCENT;
    }
    return rc;
}
