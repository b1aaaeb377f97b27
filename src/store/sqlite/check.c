/* Checks the file of a store and its place. */
#include "core/error.h"
#include "core/finding.h"
#include "store/sqlite/store.h"
#include "store/sqlite/filesystem.h"

#include <idem/sqlite.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    SMALL_PAGES = 4096, /* A quick check reads all of such a file. */
    MEND_MAX = 2 * IDEM__PATH_MAX + 64,
    NAME_MAX_LEN = IDEM__PATH_MAX + 16,
};

struct check {
    struct idem__findings to;
    struct idem_check_options options;
    const char *text; /* The part after "sqlite:" in the URL. */
    struct idem__place place;
    char directory[IDEM__PATH_MAX + 1];
    struct idem_store *store;
    struct idem_sqlite_info info;
    bool of_application;
};

/* ---- Where it is ---- */

/* True if the lock file is there, which stays when the database is deleted. */
static bool has_lock(const struct check *check)
{
    char name[NAME_MAX_LEN];
    struct stat st;

    (void)snprintf(name, sizeof(name), "%s-lock", check->place.path);
    return lstat(name, &st) == 0;
}

/* False: the file is missing. */
static bool check_file(struct check *check)
{
    char mend[MEND_MAX];
    struct stat st;

    if (lstat(check->place.path, &st) == 0) {
        idem__found(&check->to, IDEM_GRADE_OK, "file", /* mend= */ NULL,
                    "%s is there", check->place.path);
        return true;
    }
    if (errno == ENOENT && has_lock(check)) {
        (void)snprintf(mend, sizeof(mend),
                       "Mount its disk or put it back; else: idem store create "
                       "--force --store 'sqlite:%s'",
                       check->text);
        errno = ENOENT;
    } else if (errno == ENOENT && stat(check->directory, &st) == 0) {
        (void)snprintf(mend, sizeof(mend),
                       "idem store create --store 'sqlite:%s'", check->text);
    } else if (errno == ENOENT || errno == ENOTDIR) {
        (void)snprintf(mend, sizeof(mend), "mkdir -m 700 '%s'",
                       check->directory);
    } else {
        (void)snprintf(mend, sizeof(mend), "ls -ld '%s'", check->directory);
    }
    idem__found(&check->to, IDEM_GRADE_BAD, "file", mend, "no store in %s: %s",
                check->place.path, strerror(errno));
    return false;
}

static void check_filesystem(struct check *check)
{
    enum idem__trust trust;
    char name[64];

    if (!idem__filesystem_look(check->directory, name, &trust)) {
        idem__found(&check->to, IDEM_GRADE_WARN, "filesystem", /* mend= */ NULL,
                    "cannot inspect %s: %s", check->directory, strerror(errno));
        return;
    }
    if (trust == IDEM__TRUST_LOCAL) {
        idem__found(&check->to, IDEM_GRADE_OK, "filesystem", /* mend= */ NULL,
                    "a local disk (%s)",
                    name[0] == '\0' ? "by its number" : name);
    } else if (trust == IDEM__TRUST_UNKNOWN) {
        idem__found(&check->to, IDEM_GRADE_OK, "filesystem", /* mend= */ NULL,
                    "%s, which idem does not know: its locks are tested each "
                    "time the store is opened",
                    name[0] == '\0' ? "one without a name" : name);
    } else {
        idem__found(&check->to,
                    check->place.network ? IDEM_GRADE_WARN : IDEM_GRADE_BAD,
                    "filesystem", "Move the store to a local disk.",
                    "a network file system (%s): where several hosts use the "
                    "store, an operation can run twice%s",
                    name[0] == '\0' ? "by its number" : name,
                    check->place.network ? "; the store's URL allows it" : "");
    }
}

/* ---- Who may read and write it ---- */

static void check_directory(struct check *check)
{
    char mend[MEND_MAX];
    struct stat st;

    if (stat(check->directory, &st) != 0) {
        return; /* The check of the file has reported that. */
    }
    if ((st.st_mode & S_IWOTH) != 0 ||
        ((st.st_mode & S_IWGRP) != 0 && check->place.gid == (gid_t)-1)) {
        (void)snprintf(mend, sizeof(mend), "chmod %s '%s'",
                       check->place.gid == (gid_t)-1 ? "go-w" : "o-w",
                       check->directory);
        idem__found(&check->to, IDEM_GRADE_WARN, "directory", mend,
                    "%s may be written by %s, who can put another store in "
                    "the place of this one, and so decide what runs",
                    check->directory,
                    (st.st_mode & S_IWOTH) != 0 ? "anyone" : "its group");
        return;
    }
    idem__found(&check->to, IDEM_GRADE_OK, "directory", /* mend= */ NULL,
                "only %s may write to it",
                check->place.gid == (gid_t)-1 ? "its owner"
                                              : "its owner and its group");
}

/* The permission that others should not have on a file of this mode; NULL: all is well.
 * The shared memory and the lock file have no records in them, but a user who may open
 * them can stop every process. */
static const char *flaw_of(mode_t mode, bool shared)
{
    if ((mode & S_IWOTH) != 0) {
        return "is writable by anyone: a record can be forged";
    }
    if ((mode & S_IROTH) != 0) {
        return "is readable by anyone: every recorded outcome";
    }
    if (!shared && (mode & S_IWGRP) != 0) {
        return "is writable by its group: a record can be forged";
    }
    if (!shared && (mode & S_IRGRP) != 0) {
        return "is readable by its group: every recorded outcome";
    }
    return NULL;
}

/* True if the mode of the file is right, or the file is missing. */
static bool check_mode(struct check *check, const char *suffix)
{
    bool shared = check->place.gid != (gid_t)-1;
    char name[NAME_MAX_LEN];
    char mend[MEND_MAX];
    const char *flaw;
    struct stat st;

    (void)snprintf(name, sizeof(name), "%s%s", check->place.path, suffix);
    if (lstat(name, &st) != 0) {
        if (errno == ENOENT) {
            return true;
        }
        idem__found(&check->to, IDEM_GRADE_WARN, "mode", /* mend= */ NULL,
                    "cannot inspect %s: %s", name, strerror(errno));
        return false;
    }
    flaw = flaw_of(st.st_mode, shared);
    if (flaw == NULL) {
        return true;
    }
    (void)snprintf(mend, sizeof(mend), "chmod %s '%s'",
                   shared ? "o-rwx" : "go-rwx", name);
    idem__found(&check->to,
                *suffix == '\0' && (st.st_mode & S_IWOTH) != 0
                    ? IDEM_GRADE_BAD
                    : IDEM_GRADE_WARN,
                "mode", mend, "%s %s", name, flaw);
    return false;
}

static void check_modes(struct check *check)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-lock",
                                           "-reserve"};
    bool well = true;
    size_t i;

    for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        well = check_mode(check, suffixes[i]) && well;
    }
    if (well) {
        idem__found(&check->to, IDEM_GRADE_OK, "mode", /* mend= */ NULL,
                    "only its owner%s may read and write it",
                    check->place.gid != (gid_t)-1 ? " and its group" : "");
    }
}

static void check_owner(struct check *check)
{
    struct stat st;

    if (lstat(check->place.path, &st) == 0 && st.st_uid != geteuid() &&
        st.st_uid != 0 && check->place.gid == (gid_t)-1) {
        idem__found(&check->to, IDEM_GRADE_WARN, "owner",
                    "Check as the user who owns it.",
                    "it belongs to the user %lu, and you are %lu",
                    (unsigned long)st.st_uid, (unsigned long)geteuid());
    }
}

/* A file that is missing looks like a first use, unless the URL says that there
 * is a store. */
static void check_create(struct check *check)
{
    if (check->place.no_create) {
        idem__found(&check->to, IDEM_GRADE_OK, "create", /* mend= */ NULL,
                    "a missing store is not created");
    } else {
        idem__found(
            &check->to, IDEM_GRADE_OK, "create",
            "Add create=no to the store's URL.",
            "a store whose file and lock file are missing is created anew");
    }
}

/* ---- Room ---- */

static void check_room(struct check *check)
{
    uint64_t room = idem__check_room(check->directory);

    if (room == UINT64_MAX) {
        return;
    }
    if (room < IDEM__CHECK_ROOM_LOW) {
        idem__found(
            &check->to, room == 0 ? IDEM_GRADE_BAD : IDEM_GRADE_WARN, "room",
            "Free space on it: du shows what fills it; idem purge frees space "
            "only in the store.",
            "%llu KiB are free on the disk of %s",
            (unsigned long long)(room >> 10), check->directory);
        return;
    }
    idem__found(&check->to, IDEM_GRADE_OK, "room", /* mend= */ NULL,
                "%llu MiB are free on the disk",
                (unsigned long long)(room >> 20));
}

/* A claim is refused while the reserve is not whole, and fills it first. */
static void check_reserve(struct check *check)
{
    uint64_t wanted = IDEM__RESERVE_LEN;
    char name[NAME_MAX_LEN];
    struct statvfs fs;
    struct stat st;

    if (statvfs(check->directory, &fs) == 0 &&
        fs.f_blocks * fs.f_frsize / IDEM__RESERVE_PART < wanted) {
        wanted = fs.f_blocks * fs.f_frsize / IDEM__RESERVE_PART;
    }
    (void)snprintf(name, sizeof(name), "%s-reserve", check->place.path);
    if (lstat(name, &st) != 0) {
        idem__found(&check->to,
                    errno == ENOENT ? IDEM_GRADE_OK : IDEM_GRADE_WARN,
                    "reserve", /* mend= */ NULL,
                    errno == ENOENT ? "none yet: the first claim makes it"
                                    : "it cannot be inspected");
    } else if ((uint64_t)st.st_blocks * 512 < wanted) {
        uint64_t lacks = wanted - (uint64_t)st.st_blocks * 512;

        idem__found(
            &check->to,
            idem__check_room(check->directory) < lacks ? IDEM_GRADE_BAD
                                                       : IDEM_GRADE_WARN,
            "reserve", "Make room on the disk.",
            "%llu KiB of %llu are reserved for ending open attempts: the next "
            "claim fills the reserve, or is refused",
            (unsigned long long)st.st_blocks / 2,
            (unsigned long long)wanted >> 10);
    } else {
        idem__found(&check->to, IDEM_GRADE_OK, "reserve", /* mend= */ NULL,
                    "%llu KiB are reserved for ending open attempts",
                    (unsigned long long)st.st_blocks / 2);
    }
}

/* ---- What is in it ---- */

/* The error of opening contains the remedy, if there is one. */
static bool open_store(struct check *check)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_error error;

    options.flags = IDEM_OPEN_READONLY;
    error.code = idem_sqlite_open(check->text, &options, &check->store, &error);
    if (error.code == 0) {
        error.code = idem__sqlite_inspect(check->store, /* count= */ false,
                                          &check->info, &error);
    }
    if (error.code != 0) {
        idem__found_error(&check->to, "open",
                          error.code == IDEM_ECORRUPT ? IDEM__CHECK_PUT_BACK
                                                      : NULL,
                          &error);
        return false;
    }
    if (check->of_application) {
        idem__found(&check->to, IDEM_GRADE_OK, "application", /* mend= */ NULL,
                    "the database is an application's: only the application's "
                    "transactions change its records, and idem reads them");
    }
    idem__found(&check->to, IDEM_GRADE_OK, "schema", /* mend= */ NULL,
                "it opens; its schema is %u", check->info.schema);
    return true;
}

static void check_copy(const struct check *check)
{
    char mend[MEND_MAX];

    (void)snprintf(mend, sizeof(mend),
                   "idem store mark-restored --store 'sqlite:%s'", check->text);
    if (check->info.is_other) {
        idem__found(&check->to, IDEM_GRADE_BAD, "identity", mend,
                    "it is not the store that was made here, or lies here "
                    "without its lock file");
    }
    if (check->info.is_copy) {
        idem__found(
            &check->to, IDEM_GRADE_BAD, "copy", mend,
            "it is older than it was before: it was restored from a copy, and "
            "is not marked");
    }
}

#define DAY_MS (INT64_C(24) * 3600 * 1000)

/* A clock that was ahead when the host booted makes records look old. */
static void check_clock(const struct check *check)
{
    struct idem_error error;
    int64_t jump_ms = 0;
    int64_t doubt_ms = 0;

    error.code = idem_sqlite_clock(check->store, &jump_ms, &doubt_ms, &error);
    if (error.code != 0) {
        idem__found_error(&check->to, "clock", /* mend= */ NULL, &error);
    } else if (jump_ms > DAY_MS) {
        idem__found(
            &check->to, IDEM_GRADE_WARN, "clock",
            "If the host was not down for so long, set its clock right, "
            "then: idem store set-clock",
            "the store's time advanced by %lld hours at this boot%s",
            (long long)(jump_ms / (DAY_MS / 24)),
            doubt_ms > 0
                ? "; the host's clock is not known to be synchronised, so "
                  "nothing expires by it yet"
                : "");
    }
}

/* Every program that reads the file, such as a backup or a shell, can hold its
 * log. */
static void check_log(const struct check *check)
{
    struct idem_sqlite_log_info log = IDEM_SQLITE_LOG_INFO_INIT;
    char mend[MEND_MAX];

    if (idem_sqlite_log(check->store, &log, NULL) != 0 || log.pid == 0) {
        return; /* A later check reports a file that cannot be read. */
    }
    (void)snprintf(mend, sizeof(mend),
                   "End the transaction of process %lld: ps -fp %lld",
                   (long long)log.pid, (long long)log.pid);
    idem__found(&check->to, IDEM_GRADE_WARN, "log", mend,
                "the log %s-wal has grown to %llu MB and cannot shrink: "
                "process %lld (%s) keeps a transaction open",
                check->info.path, (unsigned long long)(log.len >> 20),
                (long long)log.pid, log.process);
}

/* A quick check reads no more of a large file than opening it does. */
static void check_inside(const struct check *check)
{
    char mend[MEND_MAX];

    check_copy(check);
    check_clock(check);
    check_log(check);
    if (check->options.quick && check->info.pages > SMALL_PAGES) {
        (void)snprintf(mend, sizeof(mend),
                       "idem store check --store 'sqlite:%s'", check->text);
        idem__found(&check->to, IDEM_GRADE_SKIP, "records", mend,
                    "the records and the %llu pages were not read",
                    (unsigned long long)check->info.pages);
        return;
    }
    idem__check_contents(&check->to, &check->options,
                         (struct idem__sqlite_store *)check->store,
                         &check->info);
}

int idem_sqlite_check(const char *path,
                      const struct idem_check_options *options,
                      idem_finding_fn *each, void *ctx,
                      struct idem_error *ret_error)
{
    struct check check = {
        .to = {each, ctx},
        .options = IDEM_CHECK_OPTIONS_INIT,
        .text = path,
        .info = IDEM_SQLITE_INFO_INIT,
    };
    int rc = idem__check_options(options, &check.options, ret_error);

    if (rc != 0) {
        return rc;
    }
    rc = idem__path_split(path, &check.place, ret_error);
    if (rc != 0) {
        return rc;
    }
    if (check.place.path[0] == '\0') {
        return idem__error(ret_error, IDEM_EINVALID,
                           "the store's path is empty");
    }
    idem__path_directory(check.place.path, check.directory);
    if (!check_file(&check)) {
        return 0;
    }
    check_filesystem(&check);
    check_directory(&check);
    check_modes(&check);
    check_owner(&check);
    check.of_application =
        !has_lock(&check) && idem__sqlite_is_of_application(check.place.path);
    if (!check.of_application) {
        check_create(&check);
    }
    check_room(&check);
    if (!check.of_application) {
        check_reserve(&check);
    }
    if (open_store(&check)) {
        check_inside(&check);
    }
    idem_close(check.store);
    return rc;
}
