/* The file of a store is taken away while a handle has it open: whatever happened to
 * it, nothing is claimed any more, and no end counts as recorded. */
#include "store/sqlite/store.h"

#include "claims.h"
#include "disk.h"
#include "test.h"
#include "threads.h"

#include <idem/sqlite.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DISK_LEN = 32 << 20,
    QUIET_MS = 5000 /* Then a directory answers for the names in it: files.c. */
};

/* The accident on the disk. On it, link leads to top/below, where the store is. */
struct accident {
    const char *name;
    const char *command;
    const char *reason; /* Of the refusal. */
};

#define MISSING "renamed or unmounted"
#define REPLACED "another file has replaced the store since"
#define LOG_REPLACED "another file has replaced the store's log"
#define LOCK_LOST "lock file was deleted or renamed"

static const struct accident accidents[] = {
    {"deleted", "rm link/held.db", "the store was deleted"},
    {"renamed", "mv link/held.db link/away.db", MISSING},
    {"swapped", "cp link/held.db copy && mv copy link/held.db", REPLACED},
    {"unmounted", "umount -l \"$PWD\"", MISSING},
    {"a renamed grandparent", "mv top away", MISSING},
    {"a swapped symbolic link",
     "mkdir other && ln -s other new && mv -T new link", MISSING},
    {"a mount over the path", "mount -t tmpfs none top", MISSING},
    {"a restored copy", "cp -a top copy && mv top away && mv copy top",
     REPLACED},
    {"a deleted log", "rm link/held.db-wal", LOG_REPLACED},
    {"a renamed log", "mv link/held.db-wal link/away.db-wal", LOG_REPLACED},
    {"a mounted file", "cp link/held.db copy && mount --bind copy link/held.db",
     REPLACED},
    {"a deleted lock file", "rm link/held.db-lock", LOCK_LOST},
    {"a renamed lock file", "mv link/held.db-lock link/away.db-lock",
     LOCK_LOST},
    {"a lock file made anew",
     "mv link/held.db-lock link/away && : > link/held.db-lock", LOCK_LOST},
};

/* A store on a disk of its own, with a claim that is to be ended. */
struct victim {
    const char *disk;
    struct idem_store *store;
    struct idem_attempt *attempt;
};

/* Runs @command on the disk. */
static void on_disk(const struct victim *victim, const char *command)
{
    char line[1000];

    (void)snprintf(line, sizeof(line), "cd '%s' && %s", victim->disk, command);
    if (system(line) != 0) {
        fail_with("it did not work: %s", command);
    }
}

static int try_claim(const struct victim *victim, const char *key)
{
    struct idem_request request = claim(key);
    struct idem_attempt *attempt;
    int rc = idem_begin(victim->store, &request, &attempt, &why);

    if (rc == 0) {
        idem_attempt_destroy(attempt);
    }
    return rc;
}

static void set_up(struct victim *victim)
{
    struct idem_request request = claim("begun");
    char path[700];

    memset(victim, 0, sizeof(*victim));
    victim->disk = disk_make(DISK_LEN);
    if (victim->disk == NULL) {
        test_skip("no file system can be mounted here");
    }
    on_disk(victim, "mkdir -p top/below && ln -s top/below link");
    (void)snprintf(path, sizeof(path), "%s/link/held.db", victim->disk);
    assert_ok(idem_sqlite_open(path, NULL, &victim->store, &why));
    assert_ok(idem_begin(victim->store, &request, &victim->attempt, &why));
}

static void tear_down(struct victim *victim)
{
    idem_attempt_destroy(victim->attempt);
    idem_close(victim->store);
    disk_end(victim->disk);
}

static void expect_refusal(const struct accident *accident, int rc,
                           const char *what)
{
    if (rc != IDEM_ECONFIG || strstr(why.text, accident->reason) == NULL) {
        fail_with("%s: %s: %s %s", accident->name, what, idem_error_name(rc),
                  rc == 0 ? "" : why.text);
    }
}

static void expect_refusals(const struct victim *victim,
                            const struct accident *accident)
{
    on_disk(victim, accident->command);
    expect_refusal(accident, idem_complete(victim->attempt, NULL, &why),
                   "an end");
    expect_refusal(accident, try_claim(victim, "new"), "a claim");
}

/* Each accident is found, by the next end and by the next claim. */
TEST(handle, noticesWhateverHappensToItsFile)
{
    EACH(accident, accidents) {
        struct victim victim;

        set_up(&victim);
        expect_refusals(&victim, accident);
        tear_down(&victim);
    }
}

/* Claims once more, and sees that the directory answers from now on. */
static void expect_quiet(const struct victim *victim)
{
    assert_ok(try_claim(victim, "another"));
    assert_true(((struct idem__sqlite_store *)victim->store)->files.is_quiet);
}

/* Each accident is found where the directory answers for its names, too; another file in
 * it is no accident. */
TEST(handle, noticesItWhereTheDirectoryAnswers)
{
    struct victim victims[COUNT(accidents)];
    struct victim other;
    size_t i;

    EACH(victim, victims) {
        set_up(victim);
    }
    set_up(&other);
    sleep_ms(QUIET_MS);
    EACH(victim, victims) {
        expect_quiet(victim);
    }
    expect_quiet(&other);

    for (i = 0; i < COUNT(accidents); i++) {
        expect_refusals(&victims[i], &accidents[i]);
        tear_down(&victims[i]);
    }
    on_disk(&other, "touch link/another");
    assert_ok(try_claim(&other, "new"));
    assert_ok(idem_complete(other.attempt, NULL, &why));
    tear_down(&other);
}

/* A refused claim writes nothing: once the file is back, it has no attempt that nobody
 * works on. */
TEST(handle, claimsNothingInARenamedFile)
{
    struct idem_answer *answer;
    struct victim victim;

    set_up(&victim);
    on_disk(&victim, "mv link/held.db link/away.db");
    assert_code(IDEM_ECONFIG, try_claim(&victim, "new"));
    on_disk(&victim, "mv link/away.db link/held.db");
    assert_code(IDEM_ENOTFOUND, idem_get(victim.store, idem_str(""),
                                         idem_str("new"), &answer, &why));
    assert_ok(try_claim(&victim, "new"));
    assert_ok(idem_complete(victim.attempt, NULL, &why));
    tear_down(&victim);
}

/* Nor is it beside a lock file that was renamed, once that was found. */
TEST(handle, claimsNothingBesideARenamedLockFile)
{
    struct idem_answer *answer;
    struct victim victim;

    set_up(&victim);
    on_disk(&victim, "mv link/held.db-lock link/away.db-lock");
    assert_code(IDEM_ECONFIG, idem_complete(victim.attempt, NULL, &why));
    assert_code(IDEM_ECONFIG, try_claim(&victim, "new"));
    on_disk(&victim, "mv link/away.db-lock link/held.db-lock");
    assert_code(IDEM_ENOTFOUND, idem_get(victim.store, idem_str(""),
                                         idem_str("new"), &answer, &why));
    assert_ok(try_claim(&victim, "new"));
    assert_ok(idem_complete(victim.attempt, NULL, &why));
    tear_down(&victim);
}

/* A refused end may be on record in a file that was renamed a moment ago: repeated, it is
 * answered as done. */
TEST(handle, recognisesTheEndInARenamedFile)
{
    struct victim victim;
    char away[700];
    char path[700];

    set_up(&victim);
    (void)snprintf(path, sizeof(path), "%s/link/held.db", victim.disk);
    (void)snprintf(away, sizeof(away), "%s/link/away.db", victim.disk);
    assert_int_equal(rename(path, away), 0);
    assert_code(IDEM_ECONFIG, idem_complete(victim.attempt, NULL, &why));
    assert_int_equal(rename(away, path), 0);
    assert_ok(idem_complete(victim.attempt, NULL, &why));
    assert_int_equal(get(victim.store, "begun")->status, IDEM_STATUS_COMPLETED);
    tear_down(&victim);
}
