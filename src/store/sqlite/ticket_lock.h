/* A lock between processes that lets them take turns. */
#ifndef IDEM_STORE_SQLITE_TICKET_LOCK_H
#define IDEM_STORE_SQLITE_TICKET_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct idem__ticket_lock_page;

/* One process's part of the lock; zero: not open. */
struct idem__ticket_lock {
    int fd; /* Descriptor of the lock file; lock.c owns it. */
    struct idem__ticket_lock_page *page; /* Mapped from it. */
    /* When the file was last inspected, and had its full length. */
    int64_t looked_ns;
    uint32_t ticket; /* The ticket of the holder, ... */
    bool has_ticket; /* ... unless it came from the head of the line. */
    bool emptied;    /* The file was truncated; the holder clears this. */
    bool deleted;    /* The file had no name at the last inspection. */
};

/* Extends the lock file to its full length, if it is shorter, and maps it. 0, or an
 * errno. */
int idem__ticket_lock_open(struct idem__ticket_lock *lock, int fd);
void idem__ticket_lock_close(struct idem__ticket_lock *lock);

/* Takes the lock in turn. 0, ETIMEDOUT when CLOCK_MONOTONIC has reached @deadline_ms, or
 * another errno. If the deadline has passed already, takes the lock only if no process
 * has it or waits for it. If the line is long and *@ends (atomic; NULL: false) is true,
 * or becomes true while this process waits, it goes to the head of the line. */
int idem__ticket_lock_take(struct idem__ticket_lock *lock, int64_t deadline_ms,
                           const bool *ends);

/* Releases the lock, and wakes the next process. False: the lock file was deleted. */
bool idem__ticket_lock_pass(struct idem__ticket_lock *lock);

/* The generation of the completed records (store/shared/replays.h), for any thread. @len
 * is the length of the file just now. 0: it was truncated, or has none yet. */
uint64_t idem__ticket_lock_generation(const struct idem__ticket_lock *lock,
                                      off_t len);

/* For the holder of the lock: notes that a change of completed records begins, or has
 * ended. */
void idem__ticket_lock_change(struct idem__ticket_lock *lock, bool begins);

#endif
