/* How new the store in this place has been, noted beside it.
 *
 * An older copy that is put in its place brings no sign of its own: all that it
 * knows is consistent. So the newest saved time of the store is noted in the
 * lock file too, which is not part of a copy, after the commit that saved it. A
 * store whose time is less than the note has lost commits that were durable.
 * The opposite proves nothing: the note is written once a second at most, never
 * flushed, and not there where the copy was put into another place.
 *
 * The note, after the bytes that are locked:
 *
 *     64  8  "IDEMSEEN"
 *     72  8  the time in ms, most significant byte first
 *     80 16  first half of SHA-256 over these
 */
#include "store/sqlite/seen.h"

#include "base/bytes.h"
#include "core/digest.h"

#include <string.h>
#include <unistd.h>

enum {
    NOTE_AT = 64,
    NOTE_TIME = 8,
    NOTE_SUM = 16,
    NOTE_LEN = 32
};

static const char magic[NOTE_TIME] = {'I', 'D', 'E', 'M', 'S', 'E', 'E', 'N'};

static bool make(int64_t ms, uint8_t ret_note[NOTE_LEN])
{
    memcpy(ret_note, magic, NOTE_TIME);
    idem__put_u64(ret_note + NOTE_TIME, (uint64_t)ms);
    return idem__body_digest(idem_bytes(ret_note, NOTE_SUM),
                             ret_note + NOTE_SUM) == 0;
}

void idem__seen_note(const struct idem__lock *lock, int64_t ms)
{
    uint8_t note[NOTE_LEN];

    if (make(ms, note)) {
        (void)!pwrite(idem__lock_fd(lock), note, NOTE_LEN, NOTE_AT);
    }
}

int idem__seen_set(const struct idem__lock *lock, int64_t ms)
{
    uint8_t note[NOTE_LEN];
    int fd = idem__lock_fd(lock);

    return make(ms, note) &&
                   pwrite(fd, note, NOTE_LEN, NOTE_AT) == (ssize_t)NOTE_LEN
               ? 0
               : -1;
}

int64_t idem__seen_ms(const struct idem__lock *lock)
{
    uint8_t note[NOTE_LEN];
    uint8_t wanted[NOTE_LEN];
    int64_t ms;

    if (pread(idem__lock_fd(lock), note, NOTE_LEN, NOTE_AT) !=
        (ssize_t)NOTE_LEN) {
        return 0;
    }
    ms = (int64_t)idem__get_u64(note + NOTE_TIME);
    return make(ms, wanted) && memcmp(note, wanted, NOTE_LEN) == 0 ? ms : 0;
}

void idem__seen_forget(const struct idem__lock *lock)
{
    if (idem__seen_ms(lock) != 0) {
        (void)idem__seen_set(lock, 0);
    }
}
