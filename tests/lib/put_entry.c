/* An entry in a journal that says it is for whatever store.
 *
 *     put_entry STORE URL DIRECTORY KEY
 *
 * The attempt is one of STORE, in progress, and was completed; the entry about it names
 * URL, as one that somebody forged does, or one that was written under another name. */
#include "contract/store.h"

#include <err.h>
#include <idem.h>
#include <idem/journal.h>

static void check(int code, const struct idem_error *error)
{
    if (code != 0) {
        errx(1, "%s", error->text);
    }
}

static void put(struct idem_store *store, struct idem_journal *journal,
                const char *url, const char *key)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_outcome outcome = {
        .status = IDEM_STATUS_COMPLETED,
        .result = {.bytes = idem_str("receipt")},
    };
    const char *own = store->url;
    struct idem_journal_entry *entry;
    struct idem_attempt *attempt;
    struct idem_error error;

    request.key = idem_str(key);
    request.on_expired_lease = IDEM_HOLD;
    request.lease_ms = 3600 * 1000;
    check(idem_begin(store, &request, &attempt, &error), &error);
    store->url = url;
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

    if (argc != 5) {
        errx(64, "usage: put_entry STORE URL DIRECTORY KEY");
    }
    check(idem_open(argv[1], NULL, &store, &error), &error);
    check(idem_journal_open(argv[3], /* create= */ true, &journal, &error),
          &error);
    put(store, journal, argv[2], argv[4]);
    idem_journal_close(journal);
    idem_close(store);
    return 0;
}
