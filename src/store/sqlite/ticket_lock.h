/* The order of the processes that want the lock. */
#ifndef IDEM_STORE_SQLITE_TICKET_LOCK_H
#define IDEM_STORE_SQLITE_TICKET_LOCK_H

#include <stdbool.h>
#include <stdint.h>

struct idem__ticket_lock_page;

/* One process's place in the line; zeroed: none. */
struct idem__ticket_lock {
    int fd;                              /* Of the lock file; its owner's. */
    struct idem__ticket_lock_page *page; /* Mapped from it. */
    int64_t looked_ns; /* When the file was last looked at, and had its room. */
    uint32_t ticket;   /* Of the holder, */
    bool has_ticket;   /* unless it came from the head of the line. */
    bool emptied; /* The file had lost its room; for the holder to clear. */
    bool deleted; /* No name leads to the file any more, at the last look. */
};

/* Gives the lock file its room, if it has none yet, and maps it. 0, or an
 * errno. */
int idem__ticket_lock_open(struct idem__ticket_lock *lock, int fd);
void idem__ticket_lock_close(struct idem__ticket_lock *lock);

/* Takes the lock in turn. 0, ETIMEDOUT when CLOCK_MONOTONIC has reached
 * @deadline_ms, or another errno. With a deadline that has come already it takes
 * the lock only if nobody has it or waits for it. Where the line is long, one for
 * which *@ends is true (atomic; it may become so meanwhile; NULL: it never is) goes
 * to its head. */
int idem__ticket_lock_take(struct idem__ticket_lock *lock, int64_t deadline_ms,
                           const bool *ends);

/* Lets it go, and calls the next. False: the lock file was deleted. */
bool idem__ticket_lock_pass(struct idem__ticket_lock *lock);

/* The generation of the completed records (store/shared/replays.h), from any thread. 0:
 * the file was deleted, truncated, or has none yet. */
uint64_t idem__ticket_lock_generation(const struct idem__ticket_lock *lock);

/* For the holder of the lock: a change of them begins, or has ended. */
void idem__ticket_lock_change(struct idem__ticket_lock *lock, bool begins);

#endif
