/* A lock between processes that lets them take turns.
 *
 * The lock itself is a classic fcntl record lock on the first byte of the file. The
 * kernel drops it with its process even if children remain, which it does not do for a
 * flock, and it works between containers, which do not know each other's process numbers.
 * But a process can only poll for it, because waiting with a deadline takes a signal, and
 * it has no order: the process that polls at the right moment gets it. In a test one
 * process starved.
 *
 * The order is kept beside the lock, in memory that the processes share: a page of the
 * same file. A process that wants the lock takes a ticket; the holder that releases it
 * names the next ticket and wakes its owner, who then takes the lock. All of this is only
 * advice; the kernel's lock alone decides. A process that is killed or stopped may leave
 * stale words, or a ticket that no process answers to, and any member of the store's
 * group can write anything there. So a waiter tries the lock from time to time, and takes
 * it if it is free and the process whose turn it is does not come. A process that was
 * passed over, or whose ticket is impossibly old, takes another ticket. Whatever the
 * words are, the next holder that releases the lock corrects them.
 *
 * An end must not wait for a crowd of claims. While the line is long, a process that ends
 * or renews an attempt takes no ticket: it adds itself to a count at the head of the
 * line. A holder that releases the lock then wakes the processes at the head, and not the
 * owner of the next ticket, who finds the lock by itself a moment later. At most a few
 * processes go to the head, and none while the line is short, so turns stay even. A count
 * that a killed process left costs each turn that moment, until a holder that came by its
 * ticket lowers it.
 *
 *     wants it -- ticket --> in line -- its turn, or nobody came --> holds it
 *                             |   ^                                   ^   |
 *         ends something, and |   '-- passed over: another ticket     |   |
 *         the line is long    '-------------> at the head ------------'   |
 *                                                                         |
 *                   wakes the head, or the next ticket <-- releases it ---'
 */
#include "store/sqlite/ticket_lock.h"

#include "base/crash.h"
#include "base/host.h"
#include "base/wait.h"
#include "store/shared/replays.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOCK_BYTE = 0,
    FILE_LEN = 4096,
    /* Before the words: the lock's byte, and the notes of lock_notes.c and
     * checkpoint.c. */
    WORDS_AT = 512,
    WAKE_WORDS = 64,
    GENERATION_AT = FILE_LEN - 8 /* A file that is cut short loses it. */
};

/* How long a waiter sleeps before it tries the lock by itself. The next in line tries
 * soon, because the holder may have been killed. The others try only if those before them
 * do not come either: the farther back, the later. A thousand waiters that tried every 5
 * ms would take the processors from the process whose turn it is. */
enum {
    NEXT_LOOKS_MS = 1,
    OTHERS_LOOK_MS = 5, /* For each place in line, */
    LAST_LOOKS_MS = 250 /* and at most. */
};

/* How long an inspection of the file serves the next turn. A process that works without a
 * pause inspects it once a turn, when it releases the lock. */
enum {
    LOOK_SERVES_NS = 1000000
};

/* More waiters than there ever are: a longer line means a stale or foreign word. */
enum {
    WAITERS_MAX = 4096
};

/* The length from which a line is long, and the most processes at its head. */
enum {
    LONG_LINE = 16,
    AT_HEAD_MAX = 4,
    AT_HEAD_MOST = 64 /* No process of idem writes a larger count. */
};

struct idem__ticket_lock_page {
    uint8_t before[WORDS_AT];
    uint32_t next;   /* The next ticket to hand out. */
    uint32_t served; /* The ticket whose turn it is, or was last. */
    /* Of each ticket, modulo WAKE_WORDS: changes to wake its owner. */
    uint32_t wake_words[WAKE_WORDS];
    uint32_t at_head;   /* Processes that wait at the head, without a ticket. */
    uint32_t head_bell; /* Changes to wake them. */
};

_Static_assert(sizeof(struct idem__ticket_lock_page) <= GENERATION_AT,
               "the words must lie in the file's first page");

int idem__ticket_lock_open(struct idem__ticket_lock *lock, int fd)
{
    void *page;
    /* Allocate the page now. The first write into a hole would allocate it, and on a full
     * disk that write is a SIGBUS. */
    int rc = posix_fallocate(fd, 0, FILE_LEN);

    if (rc != 0) {
        return rc;
    }
    page = mmap(NULL, FILE_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        return errno;
    }
    lock->fd = fd;
    lock->page = page;
    return 0;
}

void idem__ticket_lock_close(struct idem__ticket_lock *lock)
{
    if (lock->page != NULL) {
        (void)munmap(lock->page, FILE_LEN);
        lock->page = NULL;
    }
}

/* Another process may truncate the file while it is mapped; touching the page then is a
 * SIGBUS. So check the length before each use and extend the file again; the words then
 * begin at 0, which is as good as any stale value. The moment between check and use,
 * LOOK_SERVES_NS at most, remains a risk, as for SQLite's own mappings. False: the disk
 * is full, and no order is kept. */
static bool has_line(struct idem__ticket_lock *lock)
{
    struct stat st;

    lock->looked_ns = idem__mono_ns();
    if (fstat(lock->fd, &st) != 0) {
        return true;
    }
    lock->deleted = st.st_nlink == 0;
    if (st.st_size >= FILE_LEN) {
        return true;
    }
    lock->looked_ns = 0;
    lock->emptied = true;
    return posix_fallocate(lock->fd, 0, FILE_LEN) == 0;
}

static bool had_line_just_now(const struct idem__ticket_lock *lock)
{
    return lock->looked_ns != 0 &&
           idem__mono_ns() - lock->looked_ns < LOOK_SERVES_NS;
}

/* ---- The lock ---- */

/* 0, or an errno. */
static int set_lock(const struct idem__ticket_lock *lock, short type)
{
    struct flock range = {
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = LOCK_BYTE,
        .l_len = 1,
    };

    while (fcntl(lock->fd, F_SETLK, &range) != 0) {
        if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

static bool is_held(int rc)
{
    return rc == EAGAIN || rc == EACCES;
}

/* ---- The line ---- */

static uint32_t get(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static uint32_t take_ticket(struct idem__ticket_lock_page *page)
{
    return __atomic_fetch_add(&page->next, 1, __ATOMIC_SEQ_CST);
}

/* Wakes the owner of @ticket, if it has been handed out. A process that takes it later
 * finds the lock free. */
static void ring(struct idem__ticket_lock_page *page, uint32_t ticket)
{
    uint32_t *wake_word = &page->wake_words[ticket % WAKE_WORDS];

    if (get(&page->next) != ticket) {
        (void)__atomic_fetch_add(wake_word, 1, __ATOMIC_SEQ_CST);
        idem__futex_wake(wake_word, IDEM__FUTEX_HOST);
    }
}

/* Leaves the line. If it is this ticket's turn, the turn goes to the next one. */
static void give_up(struct idem__ticket_lock_page *page, uint32_t ticket)
{
    uint32_t served = ticket;

    if (__atomic_compare_exchange_n(&page->served, &served, ticket + 1, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        ring(page, ticket + 1);
    }
}

static int64_t look_ms(int32_t ahead)
{
    int64_t ms;

    if (ahead <= 1) {
        return NEXT_LOOKS_MS;
    }
    ms = (int64_t)OTHERS_LOOK_MS * (ahead - 1);
    return ms < LAST_LOOKS_MS ? ms : LAST_LOOKS_MS;
}

/* Sleeps until @wake_word changes from @heard. False: it is time to try the lock. */
static bool was_called(const uint32_t *wake_word, uint32_t heard, int32_t ahead,
                       int64_t deadline_ms)
{
    int64_t look_ns = idem__mono_ns() + idem__time_ns(look_ms(ahead));
    int64_t deadline_ns = idem__time_ns(deadline_ms);

    return idem__futex_wait(wake_word, heard,
                            look_ns < deadline_ns ? look_ns : deadline_ns,
                            IDEM__FUTEX_HOST);
}

/* Polls, because no order is kept. */
static int wait_outside(struct idem__ticket_lock *lock, int64_t deadline_ms)
{
    int rc;

    lock->has_ticket = false;
    while (is_held(rc = set_lock(lock, F_WRLCK))) {
        if (idem__mono_ms() >= deadline_ms) {
            return ETIMEDOUT;
        }
        (void)poll(NULL, 0, NEXT_LOOKS_MS);
    }
    return rc;
}

/* Lowers the count at the head, unless it is 0. */
static void leave_head(struct idem__ticket_lock_page *page)
{
    uint32_t n = get(&page->at_head);

    while (n > 0 &&
           !__atomic_compare_exchange_n(&page->at_head, &n,
                                        n > AT_HEAD_MOST ? 0 : n - 1, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
}

/* True if the line is long and its head has room. Ignores lengths that no line can
 * have. */
static bool is_long(const struct idem__ticket_lock_page *page)
{
    uint32_t len = get(&page->next) - get(&page->served);

    return len >= LONG_LINE && len <= WAITERS_MAX &&
           get(&page->at_head) < AT_HEAD_MAX;
}

/* Waits at the head of the line, for an end. It tries the lock every millisecond too: the
 * holder may have been killed before it could wake anyone. */
static int wait_at_head(struct idem__ticket_lock *lock, int64_t deadline_ms)
{
    struct idem__ticket_lock_page *page = lock->page;
    int64_t deadline_ns = idem__time_ns(deadline_ms);
    int rc;

    (void)__atomic_fetch_add(&page->at_head, 1, __ATOMIC_SEQ_CST);
    for (;;) {
        uint32_t heard = get(&page->head_bell);
        int64_t look_ns = idem__mono_ns() + idem__time_ns(NEXT_LOOKS_MS);

        rc = set_lock(lock, F_WRLCK);
        if (!is_held(rc)) {
            break;
        }
        if (idem__mono_ms() >= deadline_ms) {
            rc = ETIMEDOUT;
            break;
        }
        (void)idem__futex_wait(&page->head_bell, heard,
                               look_ns < deadline_ns ? look_ns : deadline_ns,
                               IDEM__FUTEX_HOST);
        if (!has_line(lock)) {
            return wait_outside(lock, deadline_ms);
        }
        /* Another process took our count for one left by a dead process: count
         * ourselves in again. */
        if (get(&page->at_head) == 0) {
            (void)__atomic_fetch_add(&page->at_head, 1, __ATOMIC_SEQ_CST);
        }
    }
    leave_head(page);
    lock->has_ticket = false;
    return rc;
}

static bool has_end(const bool *ends)
{
    return ends != NULL && __atomic_load_n(ends, __ATOMIC_RELAXED);
}

/* The caller has just checked the file's length. */
static int wait_in_line(struct idem__ticket_lock *lock, int64_t deadline_ms,
                        const bool *ends)
{
    struct idem__ticket_lock_page *page = lock->page;
    uint32_t ticket = take_ticket(page);
    bool waited = false;
    bool stuck = false;
    int rc = EAGAIN;

    IDEM__CRASH_POINT("sqlite/tickets/in-line");
    for (;;) {
        const uint32_t *wake_word = &page->wake_words[ticket % WAKE_WORDS];
        uint32_t heard;
        uint32_t served;
        int32_t ahead;
        bool called;

        /* An end joined our ops while we waited: it must not wait for the line. */
        if (has_end(ends) && is_long(page)) {
            give_up(page, ticket);
            return wait_at_head(lock, deadline_ms);
        }
        heard = get(wake_word);
        served = get(&page->served);
        ahead = (int32_t)(ticket - served);
        if (waited && (ahead < 0 || ahead > WAITERS_MAX)) {
            ticket = take_ticket(page); /* Passed over, or in another line. */
            waited = false;
            continue;
        }
        /* Our turn; or those before us did not come, and are dead or stopped. */
        if (ahead <= 0 || stuck) {
            rc = set_lock(lock, F_WRLCK);
            if (!is_held(rc)) {
                break;
            }
        }
        if (idem__mono_ms() >= deadline_ms) {
            rc = ETIMEDOUT;
            break;
        }
        called = was_called(wake_word, heard, ahead, deadline_ms);
        if (!has_line(lock)) {
            return wait_outside(lock, deadline_ms);
        }
        /* No holder woke us, and the turn has not moved on meanwhile. */
        stuck = !called && get(&page->served) == served;
        waited = true;
    }
    if (rc != 0) {
        give_up(page,
                ticket); /* Or those after us would wait for this ticket. */
    } else {
        /* A live waiter at the head would have taken the lock first, so the count
         * is stale. */
        leave_head(page);
    }
    lock->ticket = ticket;
    lock->has_ticket = true;
    return rc;
}

/* Takes the lock if nobody waits for it. A caller that does not wait must not leave a
 * ticket that no process answers to, so it takes one only if its turn is now. */
static int take_if_free(struct idem__ticket_lock *lock)
{
    struct idem__ticket_lock_page *page = lock->page;
    uint32_t ticket = get(&page->served);
    int rc;

    if (!__atomic_compare_exchange_n(&page->next, &(uint32_t){ticket},
                                     ticket + 1, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST)) {
        return ETIMEDOUT;
    }
    rc = set_lock(lock, F_WRLCK);
    if (rc != 0) {
        give_up(page, ticket);
    }
    lock->ticket = ticket;
    lock->has_ticket = true;
    return is_held(rc) ? ETIMEDOUT : rc;
}

int idem__ticket_lock_take(struct idem__ticket_lock *lock, int64_t deadline_ms,
                           const bool *ends)
{
    if (!had_line_just_now(lock) && !has_line(lock)) {
        return wait_outside(lock, deadline_ms);
    }
    if (idem__mono_ms() >= deadline_ms) {
        return take_if_free(lock);
    }
    return has_end(ends) && is_long(lock->page)
               ? wait_at_head(lock, deadline_ms)
               : wait_in_line(lock, deadline_ms, ends);
}

/* Wakes the processes at the head of the line, or else the owner of @ticket. */
static void call_next(struct idem__ticket_lock_page *page, uint32_t ticket)
{
    if (get(&page->at_head) > 0) {
        (void)__atomic_fetch_add(&page->head_bell, 1, __ATOMIC_SEQ_CST);
        idem__futex_wake(&page->head_bell, IDEM__FUTEX_HOST);
    } else {
        ring(page, ticket);
    }
}

/* Publish `served` before unlocking. A process that reads it early finds the lock still
 * held; the wake-up comes after the unlock and makes it try again. */
bool idem__ticket_lock_pass(struct idem__ticket_lock *lock)
{
    uint32_t next = lock->ticket + 1;
    bool called = has_line(lock);
    bool deleted = lock->deleted;

    if (called && !lock->has_ticket) {
        next = get(&lock->page->served); /* We had no turn to pass on. */
    } else if (called) {
        __atomic_store_n(&lock->page->served, next, __ATOMIC_SEQ_CST);
        IDEM__CRASH_POINT("sqlite/tickets/next-called");
    }
    (void)set_lock(lock, F_UNLCK);
    IDEM__CRASH_POINT("sqlite/tickets/free");
    if (called) {
        call_next(lock->page, next);
    }
    return !deleted;
}

/* ---- The generation of the completed records ---- */

static uint64_t *generation_of(const struct idem__ticket_lock *lock)
{
    return (uint64_t *)((uint8_t *)lock->page + GENERATION_AT);
}

uint64_t idem__ticket_lock_generation(const struct idem__ticket_lock *lock,
                                      off_t len)
{
    return len < FILE_LEN
               ? 0
               : __atomic_load_n(generation_of(lock), __ATOMIC_SEQ_CST);
}

/* A file that lost its words starts from the current time, so that no number comes twice.
 * If the file cannot be extended, readers find no number either. */
void idem__ticket_lock_change(struct idem__ticket_lock *lock, bool begins)
{
    uint64_t now;

    if (!has_line(lock)) {
        return;
    }
    now = __atomic_load_n(generation_of(lock), __ATOMIC_SEQ_CST);
    now = now == 0 ? (uint64_t)idem__mono_ns() | 1 : now;
    now = begins ? idem__generation_begun(now) : idem__generation_ended(now);
    __atomic_store_n(generation_of(lock), now, __ATOMIC_SEQ_CST);
}
