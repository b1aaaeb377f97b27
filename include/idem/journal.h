/* idem/journal.h: keeps outcomes on this host until their store can record them.
 *
 * If a store is unreachable or full when the work is done, the outcome exists only in a
 * process that is about to end. A journal is a directory on this host that keeps the
 * outcome until the store can record it.
 *
 *     idem_journal_open(directory, create, &journal, &error)
 *     |
 *     +-- idem_journal_put(journal, store, attempt, &outcome, &entry, &error)
 *     |   |
 *     |   |   idem_end(attempt, &outcome, &error) returns ...
 *     |   |
 *     |   +-- 0 or IDEM_ELOST   idem_journal_remove(entry): the store has decided
 *     |   +-- anything else     idem_journal_leave(entry): for a later replay
 *     |
 *     +-- idem_journal_replay(journal, store, ...)   the next time, before
 *     |                                              any idem_begin()
 *     idem_journal_close(journal)
 *
 * For a remote store (idem_store_is_remote()), put an outcome before you send it to the
 * store, so that it survives the death of the process and a loss of the network. For a
 * local store, put it only if the store refuses it. A replay is as safe as the first
 * try: it ends the attempt by its nonce and fence, and the store recognises an outcome
 * that it has already recorded. If another attempt owns the record by then, the outcome
 * is LOST, and the replay sets it aside for a person.
 *
 * The files
 * ---------
 *
 * Each entry is a file of mode 0600 in a directory of mode 0700, named
 *
 *     STORE-ID-N.idj           waits for its replay, or is being written
 *     STORE-ID-N.INODE.lost    the store answered LOST; for a person
 *     STORE-ID-N.INODE.bad     cannot be trusted; for a person
 *
 *     put --> .idj -- replayed: on record --> deleted
 *              | |--- replayed: LOST -------> .lost
 *              | '--- torn or changed ------> .bad
 *              '- the store did not record it: it stays
 *
 * STORE is 8 hex digits of the SHA-256 of the store's URL, and ID 16 hex digits of the
 * record's id. N is the first free number: the names of a record's outcomes are
 * therefore known in advance, and a lookup tries them instead of reading the directory.
 * INODE is the number of the file, which makes the name unique.
 *
 * A process that works on an entry holds a flock() on it. The content, all numbers with
 * the most significant byte first:
 *
 *      0  4  "IDJ1"                     16 16  nonce
 *      4  1  version, 1                 32  8  retry_after
 *      5  1  status                     40  4  failures_max
 *      6  1  1: the result is not kept  44 28  the lengths of the fields, 4 bytes
 *      7  1  (zero)                            each
 *      8  8  fence
 *     72  .  the fields: the store's URL, scope, key, content type, metadata, text,
 *            result
 *      .  8  when the work ended (if its owner did not say, when the outcome was
 *            put), by the wall clock of this host, in ms
 *      . 16  first half of SHA-256 over everything before
 */
#ifndef IDEM_JOURNAL_H
#define IDEM_JOURNAL_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* An open journal. Many threads may use it at once, and many processes the same
 * directory. */
struct idem_journal;

/* Opens the journal in @directory, which must belong to this user. With @create,
 * creates a missing directory, but not its parent. The caller closes *@ret_journal.
 *
 * IDEM_ENOTFOUND     The directory does not exist, and @create is false.
 * IDEM_EDENIED       The directory belongs to another user, is writable by others, is a
 *                    symbolic link or not a directory, or this user may not open or
 *                    create it.
 * IDEM_ECONFIG       The parent directory does not exist.
 * IDEM_EFULL, IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem_journal_open(const char *directory, bool create,
                      struct idem_journal **ret_journal,
                      struct idem_error *ret_error);

struct idem_journal_usage {
    size_t size;      /* sizeof, set by IDEM_JOURNAL_USAGE_INIT. */
    uint64_t entries; /* Files of any kind. */
    uint64_t room; /* Bytes left for the journal: it leaves 16 MiB of its file
                      system free, or a 64th if that is less. */
    bool near;     /* room is less than 256 MiB, or than a quarter of the file
                      system if that is less. */
};
#define IDEM_JOURNAL_USAGE_INIT                                                \
    {                                                                          \
        sizeof(struct idem_journal_usage), 0, 0, false                         \
    }

/* Reads how many outcomes the journal has, and how much room is left. It counts the
 * files: 100,000 take about a twentieth of a second.
 *
 * IDEM_EINVALID  The size of *@ret_usage is not set.
 * IDEM_EDENIED, IDEM_EUNAVAILABLE
 */
int idem_journal_read_usage(struct idem_journal *journal,
                            struct idem_journal_usage *ret_usage,
                            struct idem_error *ret_error);

/* Frees the handle; entries stay in the directory. Remove or leave each held entry
 * first. NULL is allowed. */
void idem_journal_close(struct idem_journal *journal);

/* An outcome that this process has put and holds: no other process replays it. */
struct idem_journal_entry;

/* Keeps the outcome of @attempt, which was STARTED in @store; durable when this returns
 * 0. With any other code the journal keeps nothing. If it already has the same outcome
 * of the same attempt, *@ret_entry is that entry. The call takes the same time however
 * many entries there are.
 *
 * IDEM_EINVALID      The attempt was not STARTED, the outcome is not one that
 *                    idem_end() would take, or the store has no URL.
 * IDEM_EFULL         The disk has only the room that the journal leaves free, or 1,000
 *                    other outcomes of this record wait.
 * IDEM_EDENIED, IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem_journal_put(struct idem_journal *journal,
                     const struct idem_store *store,
                     const struct idem_attempt *attempt,
                     const struct idem_outcome *outcome,
                     struct idem_journal_entry **ret_entry,
                     struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Returns the name of the entry's file in the directory of the journal; valid as long
 * as @entry. */
const char *idem_journal_entry_name(const struct idem_journal_entry *entry);

/* Deletes the entry and frees @entry: the store has recorded the outcome, or answered
 * LOST. NULL is allowed. (After a power cut within seconds the file may be back; its
 * replay then finds the outcome on record.) */
void idem_journal_remove(struct idem_journal_entry *entry);

/* Frees @entry and leaves its file: the store has not recorded the outcome. From then
 * on any process may replay it. NULL is allowed. */
void idem_journal_leave(struct idem_journal_entry *entry);

/* ---- Replay ------------------------------------------------------------ */

enum idem_journal_state {
    IDEM_JOURNAL_WAITING = 1, /* For its replay, or the store did not record it.
                                 It stays. */
    IDEM_JOURNAL_IN_USE,      /* Another process holds it. */
    IDEM_JOURNAL_NEWER,    /* Written by a newer version of idem. It stays. */
    IDEM_JOURNAL_RECORDED, /* Replayed: the store has recorded it, now or
                              before, and the entry is gone. */
    IDEM_JOURNAL_LOST,     /* Its attempt no longer owns the record. The replay
                              sets it aside for a person; else the error gives
                              the reason. */
    IDEM_JOURNAL_DAMAGED,  /* Torn, changed, or not an entry. No replay records
                              it; a replay sets it aside, else the error gives
                              the reason. */
};

/* An entry as it was found. The slices are valid during the call only. If the state is
 * DAMAGED or NEWER, only name and len are certain; scope and key are empty if they
 * could not be read. */
struct idem_journal_info {
    const char *name; /* Of its file. */
    enum idem_journal_state state;
    uint64_t len;       /* Bytes of the file. */
    int64_t written_ms; /* When the work ended, by the clock of that host. */
    struct idem_slice store_url;
    struct idem_slice scope;
    struct idem_slice key;
    uint8_t id[IDEM_ID_LEN];
    uint8_t nonce[16];
    uint64_t fence;
    struct idem_outcome outcome;
};

/* Called for each entry; @error has the reason for its state, if there is one (else its
 * code is 0). Return 0 to go on, anything else to stop. */
typedef int idem_journal_fn(void *ctx, const struct idem_journal_info *info,
                            const struct idem_error *error);

struct idem_journal_filter {
    size_t size;           /* sizeof, set by IDEM_JOURNAL_FILTER_INIT. */
    const char *name;      /* Only the entry in this file, whose name may follow
                              directories; NULL: all. */
    const char *store_url; /* Only entries for the store at this URL. NULL: all;
                              in a replay, those for the store that records
                              them. */
    const uint8_t *id;     /* Only entries that wait for this record of the
                              store; NULL: all. */
};
#define IDEM_JOURNAL_FILTER_INIT                                               \
    {                                                                          \
        sizeof(struct idem_journal_filter), NULL, NULL, NULL                   \
    }

/* Records the outcomes that wait for @store. If several wait for one record, it takes
 * completed ones first, then failed, unknown, released, retry. @each and @filter may be
 * NULL. With an id in @filter, it takes the same time however many entries there are;
 * so does a list. With a store_url in @filter, it records in @store the outcomes for
 * the store at that URL, which has moved.
 *
 * 0: all entries were read, or @each stopped, whatever their states.
 * IDEM_EINVALID, IDEM_EDENIED, IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem_journal_replay(struct idem_journal *journal, struct idem_store *store,
                        const struct idem_journal_filter *filter,
                        idem_journal_fn *each, void *ctx,
                        struct idem_error *ret_error);

/* Records some of the outcomes that wait for @store, until @each stops it. It starts at
 * a random place in the journal, so that outcomes that cannot be recorded do not hold
 * up others, however early @each stops. Only one call at a time does this, in all
 * processes; any other call does nothing.
 *
 * 0: whatever the states of the entries.
 * IDEM_EINVALID, IDEM_EDENIED, IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem_journal_catch_up(struct idem_journal *journal,
                          struct idem_store *store, idem_journal_fn *each,
                          void *ctx, struct idem_error *ret_error);

/* Shows the entries for all stores, and changes nothing. Files that are not entries
 * appear as DAMAGED; a filter for a store or a record leaves them out.
 *
 * IDEM_EINVALID  @filter is not valid, or has an id without a store_url.
 * IDEM_EDENIED, IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem_journal_list(struct idem_journal *journal,
                      const struct idem_journal_filter *filter,
                      idem_journal_fn *each, void *ctx,
                      struct idem_error *ret_error);

/* Adds the entry whose file has the content @bytes, from a journal of another host or
 * from a log (to which a program that cannot keep files writes it in base64). It is
 * durable when this returns 0; an entry that is already there is not an error.
 *
 * IDEM_ECORRUPT  @bytes is torn, changed, or not an entry.
 * IDEM_ECONFIG   A newer version of idem wrote it.
 * IDEM_EFULL     As from idem_journal_put().
 * IDEM_EDENIED, IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem_journal_adopt(struct idem_journal *journal, struct idem_slice bytes,
                       struct idem_error *ret_error);

/* Deletes the entry in the file @name for good; call it after a person has seen the
 * entry.
 *
 * IDEM_ENOTFOUND     The entry does not exist.
 * IDEM_EUNAVAILABLE  Another process holds it.
 * IDEM_EDENIED
 */
int idem_journal_drop(struct idem_journal *journal, const char *name,
                      struct idem_error *ret_error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
