/* Opening a store in a file: what is ours is opened, anything else is refused and
 * left as it is. */
#include "store/sqlite/store.h"

#include "claims.h"
#include "db.h"
#include "temp.h"
#include "test.h"

#include <idem/sqlite.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_at(const char *path, unsigned flags,
                   struct idem_store **ret_store)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;

    options.flags = flags;
    options.timeout_ms = 500;
    return idem_sqlite_open(path, &options, ret_store, &why);
}

static void assert_refused(int want, const char *path, unsigned flags)
{
    struct idem_store *store = NULL;
    int rc = open_at(path, flags, &store);

    if (rc != want) {
        fail_with("%.100s: %s, not %s", path, idem_error_name(rc),
                  idem_error_name(want));
    }
    assert_null(store);
    assert_int_equal(why.code, want);
    assert_true(why.text[0] != '\0');
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    (void)fputs(text, f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void begin_and_complete(struct idem_store *store)
{
    struct idem_request request = claim("k");

    run(store, &request, "");
}

/* However it is written, the URL of a store is an absolute path, and no more. */
TEST(open, knowsItsUrl)
{
    static const char *const written[] = {"named.db", "./named.db",
                                          ".//./named.db", "named.db?group=%u"};
    char before[1024];
    char wanted[2048];
    char path[64];
    struct idem_store *store;
    size_t i;

    assert_non_null(getcwd(before, sizeof(before)));
    (void)snprintf(wanted, sizeof(wanted), "%s", temp_path("URL"));
    assert_int_equal(mkdir(wanted, 0700), 0);
    assert_int_equal(chdir(wanted), 0);
    assert_non_null(getcwd(wanted, 1024));
    (void)strcat(wanted, "/named.db");
    for (i = 0; i < COUNT(written); i++) {
        (void)snprintf(path, sizeof(path), "%s", written[i]);
        if (strchr(path, '?') != NULL) {
            (void)sprintf(strchr(path, '='), "=%u", (unsigned)getegid());
            assert_int_equal(chmod("named.db", 0660), 0);
        }
        assert_ok(open_at(path, i % 2 == 0 ? 0 : IDEM_OPEN_READONLY, &store));
        assert_memory_equal(idem_store_url(store), "sqlite:", 7);
        assert_string_equal(idem_store_url(store) + 7, wanted);
        assert_false(idem_store_is_remote(store));
        idem_close(store);
    }
    assert_int_equal(chdir(before), 0);
}

/* A new directory in which the store "moved.db" has completed "k" with @text. */
static void enter_directory(const char *directory, const char *text,
                            struct idem_store **ret_store)
{
    struct idem_request request = claim("k");

    assert_int_equal(mkdir(directory, 0700), 0);
    assert_int_equal(chdir(directory), 0);
    assert_ok(open_at("moved.db", 0, ret_store));
    run(*ret_store, &request, text);
}

/* The process leaves the directory in which it opened a store by a relative path: a
 * connection that is opened later leads to the same store, and so does each file beside
 * it. */
TEST(open, staysInItsDirectory)
{
    const char *first = temp_path("first");
    const char *second = temp_path("second");
    struct idem_request request = claim("new");
    char before[1024];
    struct idem_store *store;
    struct idem_store *other;
    struct stat st;

    assert_non_null(getcwd(before, sizeof(before)));
    enter_directory(second, "of the second", &other);
    idem_close(other);
    assert_int_equal(unlink("moved.db-reserve"), 0);
    enter_directory(first, "of the first", &store);
    idem_close(store);
    assert_ok(open_at("moved.db", 0, &store));
    assert_int_equal(chdir(second), 0);

    idem__readers_drop_idle(&((struct idem__sqlite_store *)store)->readers);
    assert_text(get(store, "k")->result.bytes, "of the first");
    run(store, &request, "");
    assert_int_equal(lstat("moved.db-reserve", &st), -1);
    idem_close(store);
    assert_int_equal(chdir(before), 0);
}

/* Paths that lead to no file of ours. */
TEST(open, refusesPlacesThatAreNoFile)
{
    const char *directory = temp_path("directory");
    const char *fifo = temp_path("fifo");
    const char *target = temp_path("target.db");
    const char *link_path = temp_path("link.db");
    const char *inside = temp_path("nowhere");
    char path[1024];

    assert_int_equal(mkdir(directory, 0700), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    write_file(target, "", 0600);
    assert_int_equal(symlink(target, link_path), 0);
    assert_refused(IDEM_EDENIED, directory, 0);
    assert_refused(IDEM_EDENIED, fifo, 0);
    assert_refused(IDEM_EDENIED, link_path, 0);
    assert_refused(IDEM_EDENIED, "/dev/null", 0);
    assert_refused(IDEM_ECONFIG, "", 0);
    (void)snprintf(path, sizeof(path), "%s/idem.db", inside);
    assert_refused(IDEM_ECONFIG, path, 0);
    (void)snprintf(path, sizeof(path), "%s/idem.db", target);
    assert_refused(IDEM_ECONFIG, path, 0);
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_refused(IDEM_ECONFIG, path, 0);
}

/* The names of the files beside a store are longer than its own, and all of them
 * must be possible: nothing is left behind by finding out. */
TEST(open, refusesANameThatIsTooLong)
{
    const char *directory = temp_path("names");
    char path[1024];
    struct idem_store *store;
    size_t len;

    assert_int_equal(mkdir(directory, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/", directory);
    len = strlen(path);
    memset(path + len, 'x', 248);
    path[len + 248] = '\0';
    assert_refused(IDEM_ECONFIG, path, 0);
    assert_why("247");
    path[len] = '\0';
    assert_int_equal(rmdir(directory), 0);
    assert_int_equal(mkdir(directory, 0700), 0);
    path[len] = 'x';
    path[len + 247] = '\0';
    assert_ok(open_at(path, 0, &store));
    idem_close(store);
}

/* A relative path counts with the directory that it is in. */
TEST(open, refusesARelativePathThatIsTooLong)
{
    const char *directory = temp_path("far");
    char before[1024];
    char name[200];

    assert_non_null(getcwd(before, sizeof(before)));
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(mkdir(directory, 0700), 0);
    assert_int_equal(chdir(directory), 0);
    assert_int_equal(mkdir(name, 0700), 0);
    assert_int_equal(chdir(name), 0);
    assert_int_equal(mkdir(name, 0700), 0);
    assert_int_equal(chdir(name), 0);
    memcpy(name, "./", 2);
    (void)strcpy(name + 100, ".db");
    assert_refused(IDEM_ECONFIG, name, 0);
    assert_why("480");
    assert_int_equal(access(name, F_OK), -1);
    (void)strcat(name, "-lock");
    assert_int_equal(access(name, F_OK), -1);
    assert_int_equal(chdir(before), 0);
}

/* A file that anybody may write to is nobody's word. */
TEST(open, refusesWhatAnyoneMayWrite)
{
    const char *path = temp_path("open.db");
    struct idem_store *store;

    assert_ok(open_at(path, 0, &store));
    idem_close(store);
    assert_int_equal(chmod(path, 0606), 0);
    assert_refused(IDEM_EDENIED, path, 0);
    assert_why("chmod");
    assert_int_equal(chmod(path, 0660), 0);
    assert_ok(open_at(path, 0, &store));
    idem_close(store);
}

/* Files that are something else stay what they are, to the byte. */
TEST(open, refusesFilesOfOthers)
{
    static const char text[] = "This is a letter, and a long one at that; it "
                               "has more bytes than a database header.........";
    const char *letter = temp_path("letter.txt");
    const char *other = temp_path("other.db");
    const char *newer = temp_path("newer.db");
    struct idem_store *store;
    char back[sizeof(text)] = "";
    FILE *f;

    write_file(letter, text, 0600);
    assert_refused(IDEM_ECORRUPT, letter, 0);
    f = fopen(letter, "r");
    assert_non_null(f);
    assert_int_equal(fread(back, 1, sizeof(back), f), strlen(text));
    assert_string_equal(back, text);
    (void)fclose(f);

    db_run_at(other, "CREATE TABLE orders (id INTEGER)");
    assert_refused(IDEM_ECONFIG, other, 0);
    assert_why("another program");
    db_run_at(other, "SELECT id FROM orders");

    assert_ok(open_at(newer, 0, &store));
    idem_close(store);
    db_run_at(newer, "PRAGMA user_version = 99");
    assert_refused(IDEM_ECONFIG, newer, 0);
    assert_why("99");
    db_run_at(newer, "PRAGMA user_version = 1");
    assert_ok(open_at(newer, 0, &store));
    idem_close(store);
}

/* ROW(38) A damaged file is refused and not made anew. */
TEST(open, refusesADamagedFile)
{
    const char *path = temp_path("damaged.db");
    struct idem_store *store;
    struct stat before;
    struct stat after;
    FILE *f;

    assert_ok(open_at(path, 0, &store));
    begin_and_complete(store);
    idem_close(store);
    db_run_at(path, "PRAGMA wal_checkpoint(TRUNCATE)");
    assert_int_equal(stat(path, &before), 0);
    f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, 20, SEEK_SET), 0);
    (void)fputs("damaged beyond all repair", f);
    (void)fclose(f);
    assert_refused(IDEM_ECORRUPT, path, 0);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
}

/* No checksum covers the clock of the store; numbers that it cannot hold are not
 * counted on from. */
TEST(open, refusesAClockThatCannotBe)
{
    static const char *const damages[] = {
        "store_ms = 9223372036854775807",
        "store_ms = -1",
        "last_ms = 9223372036854775807",
        "last_ms = -9223372036854775808",
        "boot_ms = -1",
        "fence_floor = 9223372036854775807",
        "fence_floor = -1",
        "boot_id = x'00'",
    };

    EACH(damage, damages) {
        const char *path = temp_path("clock.db");
        struct idem_store *store;
        char sql[128];

        assert_ok(open_at(path, 0, &store));
        begin_and_complete(store);
        idem_close(store);
        (void)snprintf(sql, sizeof(sql), "UPDATE idem_clock SET %s", *damage);
        db_run_at(path, sql);
        assert_refused(IDEM_ECORRUPT, path, 0);
    }
}

/* Whether SQLite counts what an open store takes; for a process of its own, for
 * it cannot be changed once SQLite is in use. */
static bool counts_memory(const char *path, bool disable)
{
    struct idem_store *store;
    bool counts;

    (void)sqlite3_shutdown();
    if (disable && idem_sqlite_disable_memory_count() != 0) {
        _exit(2);
    }
    if (open_at(path, 0, &store) != 0 ||
        idem_sqlite_disable_memory_count() != IDEM_EINVALID) {
        _exit(3);
    }
    counts = sqlite3_memory_used() > 0;
    idem_close(store);
    return counts;
}

static int counts_in_child(const char *path, bool disable)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        _exit(counts_memory(path, disable) ? 1 : 0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(open, canDoWithoutSqliteCountingMemory)
{
    const char *path = temp_path("counted.db");

    assert_int_equal(counts_in_child(path, /* disable= */ false), 1);
    assert_int_equal(counts_in_child(path, /* disable= */ true), 0);
}
