/* Attempts of a store that are in progress, whose outcomes wait in a journal.
 *
 *     fill_journal STORE DIRECTORY ENTRIES [LEASE_MS]
 *
 * Their keys are "key-0", "key-1" ..., without a scope; each outcome is unknown, so
 * that every front end can tell of it. Nothing is flushed. */
#include <err.h>
#include <idem.h>
#include <idem/journal.h>
#include <stdio.h>
#include <stdlib.h>

int fsync(int fd);
int fdatasync(int fd);

/* These take the place of the C library's, for SQLite too. */
int fsync(int fd)
{
    (void)fd;
    return 0;
}

int fdatasync(int fd)
{
    (void)fd;
    return 0;
}

static void check(int code, const struct idem_error *error)
{
    if (code != 0) {
        errx(1, "%s", error->text);
    }
}

static void put(struct idem_store *store, struct idem_journal *journal,
                unsigned n, int64_t lease_ms)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_outcome outcome = {.status = IDEM_STATUS_UNKNOWN,
                                   .text = idem_str("the power went")};
    struct idem_journal_entry *entry;
    struct idem_attempt *attempt;
    struct idem_error error;
    char key[32];

    (void)snprintf(key, sizeof(key), "key-%u", n);
    request.key = idem_str(key);
    request.on_expired_lease = IDEM_RERUN;
    request.lease_ms = lease_ms;
    check(idem_begin(store, &request, &attempt, &error), &error);
    check(idem_journal_put(journal, store, attempt, &outcome, &entry, &error),
          &error);
    idem_journal_leave(entry);
    idem_attempt_destroy(attempt);
}

int main(int argc, char **argv)
{
    struct idem_journal *journal;
    struct idem_store *store;
    struct idem_error error;
    unsigned entries;
    unsigned n;

    if (argc < 4) {
        errx(64, "usage: fill_journal STORE DIRECTORY ENTRIES [LEASE_MS]");
    }
    entries = (unsigned)atoi(argv[3]);
    check(idem_open(argv[1], NULL, &store, &error), &error);
    check(idem_journal_open(argv[2], /* create= */ true, &journal, &error),
          &error);
    for (n = 0; n < entries; n++) {
        put(store, journal, n, argc > 4 ? atoll(argv[4]) : 60 * 1000);
    }
    idem_journal_close(journal);
    idem_close(store);
    return 0;
}
