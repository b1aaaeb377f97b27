/* Reads and writes the notes in the lock file about the store beside it. */
#include "store/sqlite/store.h"

#include "base/bytes.h"
#include "core/error.h"
#include "core/identity.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Which store was created here: the lock file has its random id, and so has the database
 * (schema.c).
 *
 * A missing or emptied database looks like a first use, and a first use forgets every
 * outcome: all work runs again. So the lock file, which stays where it is when the
 * database is deleted, swapped or not mounted, notes which store was made beside it. The
 * order of making, under the lock:
 *
 *     lock file: id, "pending"      flushed
 *     database:  the tables and id  committed
 *     lock file: id, "made"         flushed
 *     the first answer
 *
 * A process that dies after the first step leaves "pending" beside an empty database: the
 * next process goes on with that id. A process that dies after the second step leaves
 * "pending" beside a database with the same id: the next process writes "made". A person
 * decides about any other difference.
 *
 * The notes follow the bytes that are locked and the note of the newest time: "pending"
 * at 128, and "made" at 192, so that a write that tears the second leaves the first.
 *
 *      0  8  "IDEMSTOR"
 *      8  8  1 pending, 2 made; most significant byte first
 *     16 16  the id
 *     32 16  first half of SHA-256 over these
 *
 * A torn "pending" counts as no note, because no store was made yet. */

enum {
    PENDING_AT = 128,
    MADE_AT = 192,
    MAGIC_LEN = 8,
    SUM_LEN = 16,
    NOTE_STATE = 8,
    NOTE_ID = 16,
    NOTE_LEN = 48
};

static const char made_magic[MAGIC_LEN] = {'I', 'D', 'E', 'M',
                                           'S', 'T', 'O', 'R'};

static off_t place_of(enum idem__made made)
{
    return made == IDEM__MADE_PENDING ? PENDING_AT : MADE_AT;
}

/* Adds the sum to a note of @len bytes. False: no memory. */
static bool seal(uint8_t *note, size_t len)
{
    return idem__body_digest(idem_bytes(note, len - SUM_LEN),
                             note + len - SUM_LEN) == 0;
}

/* Reads a note of @len bytes with @magic. True: it is there and whole. */
static bool read_sealed(const struct idem__lock *lock, off_t at,
                        const char magic[MAGIC_LEN], uint8_t *ret_note,
                        size_t len)
{
    uint8_t wanted[NOTE_LEN];
    ssize_t n = pread(idem__lock_fd(lock), ret_note, len, at);

    if (n < 0) {
        /* A note that cannot be read must not pass for an empty one. */
        memset(ret_note, 0xff, len);
    }
    if (n != (ssize_t)len || memcmp(ret_note, magic, MAGIC_LEN) != 0) {
        return false;
    }
    memcpy(wanted, ret_note, len);
    return seal(wanted, len) && memcmp(ret_note, wanted, len) == 0;
}

/* Returns @made if that note is there and whole; NONE; or DAMAGED. */
static enum idem__made read_note(const struct idem__lock *lock,
                                 enum idem__made made,
                                 uint8_t ret_id[IDEM__STORE_ID_LEN])
{
    static const uint8_t nothing[NOTE_LEN];
    uint8_t note[NOTE_LEN] = {0};
    bool is_whole =
        read_sealed(lock, place_of(made), made_magic, note, NOTE_LEN);

    if (is_whole && idem__get_u64(note + NOTE_STATE) == (uint64_t)made) {
        memcpy(ret_id, note + NOTE_ID, IDEM__STORE_ID_LEN);
        return made;
    }
    return memcmp(note, nothing, NOTE_LEN) == 0 ? IDEM__MADE_NONE
                                                : IDEM__MADE_DAMAGED;
}

void idem__identity_read(const struct idem__lock *lock,
                         struct idem__identity *ret_identity)
{
    enum idem__made pending;

    memset(ret_identity, 0, sizeof(*ret_identity));
    ret_identity->made = read_note(lock, IDEM__MADE_DONE, ret_identity->id);
    if (ret_identity->made == IDEM__MADE_DONE) {
        return;
    }
    pending = read_note(lock, IDEM__MADE_PENDING, ret_identity->id);
    if (ret_identity->made == IDEM__MADE_NONE &&
        pending == IDEM__MADE_PENDING) {
        ret_identity->made = IDEM__MADE_PENDING;
    }
}

int idem__identity_write(const struct idem__lock *lock, enum idem__made made,
                         const uint8_t id[IDEM__STORE_ID_LEN],
                         struct idem_error *error)
{
    int fd = idem__lock_fd(lock);
    uint8_t note[NOTE_LEN];

    memcpy(note, made_magic, MAGIC_LEN);
    idem__put_u64(note + NOTE_STATE, (uint64_t)made);
    memcpy(note + NOTE_ID, id, IDEM__STORE_ID_LEN);
    if (!seal(note, NOTE_LEN)) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    if (pwrite(fd, note, NOTE_LEN, place_of(made)) == (ssize_t)NOTE_LEN &&
        fsync(fd) == 0) {
        return 0;
    }
    return idem__error(error, errno == ENOSPC ? IDEM_EFULL : IDEM_EUNAVAILABLE,
                       "the store's lock file cannot be written: %s",
                       strerror(errno));
}

int idem__identity_gone(const char *path, struct idem_error *error)
{
    return idem__error(
        error, IDEM_ECONFIG,
        "the store %.80s was created here, but is missing or empty: mount its "
        "disk or restore it; to start again without its records: idem store "
        "create --force",
        path);
}

/* The newest time that the store in this place has had.
 *
 * An older copy in the place of a store cannot be recognised by its contents, which are
 * consistent. So the newest saved time of the store is also noted in the lock file, which
 * is not part of a copy, after the commit that saved it. If the store's time is less than
 * the note, commits that were durable are missing. The opposite proves nothing: the note
 * is written once a second at most, never flushed, and missing if the copy is in another
 * place.
 *
 * The note, after the bytes that are locked:
 *
 *     64  8  "IDEMSEEN"
 *     72  8  the time in ms, most significant byte first
 *     80 16  first half of SHA-256 over these
 */

enum {
    SEEN_AT = 64,
    SEEN_TIME = 8,
    SEEN_LEN = 32
};

static const char seen_magic[MAGIC_LEN] = {'I', 'D', 'E', 'M',
                                           'S', 'E', 'E', 'N'};

int idem__seen_set(const struct idem__lock *lock, int64_t ms)
{
    uint8_t note[SEEN_LEN];
    int fd = idem__lock_fd(lock);

    memcpy(note, seen_magic, MAGIC_LEN);
    idem__put_u64(note + SEEN_TIME, (uint64_t)ms);
    return seal(note, SEEN_LEN) &&
                   pwrite(fd, note, SEEN_LEN, SEEN_AT) == (ssize_t)SEEN_LEN
               ? 0
               : -1;
}

void idem__seen_note(const struct idem__lock *lock, int64_t ms)
{
    (void)idem__seen_set(lock, ms);
}

int64_t idem__seen_ms(const struct idem__lock *lock)
{
    uint8_t note[SEEN_LEN];

    return read_sealed(lock, SEEN_AT, seen_magic, note, SEEN_LEN)
               ? (int64_t)idem__get_u64(note + SEEN_TIME)
               : 0;
}

void idem__seen_forget(const struct idem__lock *lock)
{
    if (idem__seen_ms(lock) != 0) {
        (void)idem__seen_set(lock, 0);
    }
}
