/* Fails the n-th call of a function of the C library, and can then kill.
 *
 * Linked into a program, or preloaded into one (nth.py), these functions replace those of
 * the C library, for us, SQLite, libcrypto and json-c alike. Calls within the C library,
 * such as the writes of stdio or the memory of mmap, do not pass here. */
#ifndef TEST_NTH_H
#define TEST_NTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Functions that fail for the same reasons are counted together. */
enum nth_class {
    NTH_ALLOC, /* malloc, calloc, realloc, and the aligned ones. */
    NTH_OPEN,
    NTH_READ,  /* read, pread. */
    NTH_WRITE, /* write, pwrite: half of it is written. */
    NTH_SYNC,  /* fsync, fdatasync: nothing is flushed. */
    NTH_TRUNCATE,
    NTH_STAT,   /* stat and its variants, statfs, access. */
    NTH_LOCK,   /* fcntl, to take or to query a lock. */
    NTH_MAP,    /* mmap, mremap. */
    NTH_FORK,   /* fork, vfork. */
    NTH_PIPE,   /* Descriptors that are no file: pipe2, socketpair, eventfd,
                   signalfd, timerfd, memfd. */
    NTH_SEND,   /* sendmsg, recvmsg. */
    NTH_CLOCK,  /* clock_gettime, gettimeofday. */
    NTH_RANDOM, /* getrandom. */
    NTH_THREAD, /* pthread_create. */
    NTH_CHANGE, /* chmod, chown, unlink, rename, mkdir. */
    NTH_CLASSES,
};

/* The calls that are to fail, and the counts. All processes that share the page count
 * together. nth.py knows its layout. */
struct nth_page {
    int32_t class; /* enum nth_class. */
    int32_t on;    /* 1: every call from the n-th on fails. */
    int32_t error; /* An errno. */
    int32_t kill;  /* SIGKILL before the call of any kind that comes this many
                      after the one that failed; 0: in its place; -1: never. */
    int64_t left;  /* Calls of the class that still succeed; -1: all. */
    int64_t failed;
    int64_t killed;
    int64_t blocks; /* Of memory: allocated and not freed since the start. */
    int64_t calls[NTH_CLASSES];
};

/* Counts in @page from now on, and fails the calls that it names; NULL: none. */
void nth_use(struct nth_page *page);

/* Fails the @n-th call (0: the next) of @class with @error; with @on, all that
 * come after it too. */
void nth_fail(enum nth_class class, int64_t n, bool on, int error);

/* Lets all calls succeed again. */
void nth_stop(void);

/* "alloc", "open" ...; NULL after the last. */
const char *nth_name(int class);

#endif
