/* Makes attempts that are in progress in a store, and whose outcomes wait in a journal.
 *
 *     put_entries STORE DIRECTORY ENTRIES LEASE_MS
 *     put_entries STORE DIRECTORY KEY LEASE_MS URL
 *
 * Without a URL the keys are "key-0", "key-1" ..., without a scope, and each outcome is
 * unknown, so that every front end can report it. With a URL there is one entry, of an
 * attempt that was completed; it names URL, like a forged entry, or one that was written
 * under another name of the store. Nothing is flushed. */
#include "contract/store.h"

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
                const char *key, int64_t lease_ms, const char *url)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_outcome outcome = {.status = IDEM_STATUS_UNKNOWN,
                                   .text = idem_str("the power went")};
    const char *own = store->url;
    struct idem_journal_entry *entry;
    struct idem_attempt *attempt;
    struct idem_error error;

    request.key = idem_str(key);
    request.on_expired_lease = url == NULL ? IDEM_RERUN : IDEM_HOLD;
    request.lease_ms = lease_ms;
    check(idem_begin(store, &request, &attempt, &error), &error);
    if (url != NULL) {
        outcome = (struct idem_outcome){
            .status = IDEM_STATUS_COMPLETED,
            .result = {.bytes = idem_str("receipt")},
        };
        store->url = url;
    }
    check(idem_journal_put(journal, store, attempt, &outcome, &entry, &error),
          &error);
    store->url = own;
    idem_journal_leave(entry);
    idem_attempt_destroy(attempt);
}

int main(int argc, char **argv)
{
    struct idem_journal *journal;
    struct idem_store *store;
    struct idem_error error;
    char key[32];
    int n;

    if (argc < 5) {
        errx(64,
             "usage: put_entries STORE DIRECTORY ENTRIES|KEY LEASE_MS [URL]");
    }
    check(idem_open(argv[1], NULL, &store, &error), &error);
    check(idem_journal_open(argv[2], /* create= */ true, &journal, &error),
          &error);
    if (argc > 5) {
        put(store, journal, argv[3], atoll(argv[4]), argv[5]);
    } else {
        for (n = 0; n < atoi(argv[3]); n++) {
            (void)snprintf(key, sizeof(key), "key-%d", n);
            put(store, journal, key, atoll(argv[4]), /* url= */ NULL);
        }
    }
    idem_journal_close(journal);
    idem_close(store);
    return 0;
}
