/* The directory of a journal: its names, its files, their locks. */
#ifndef IDEM_JOURNAL_DIRECTORY_H
#define IDEM_JOURNAL_DIRECTORY_H

#include "journal/entry.h"

struct idem_journal {
    int fd;
    long pid; /* That opened it. */
    uint64_t bytes_max;
    size_t entries_max;
};

/* Longer names are none of ours. */
enum {
    IDEM__JOURNAL_NAME_MAX = 63
};

/* What a name says of its file. */
enum idem__journal_kind {
    IDEM__JOURNAL_FOREIGN,
    IDEM__JOURNAL_PENDING, /* .idj */
    IDEM__JOURNAL_NEW,     /* .N.new */
    IDEM__JOURNAL_LOST,    /* .lost */
    IDEM__JOURNAL_BAD,     /* .bad */
};

enum idem__journal_kind idem__journal_kind_of(const char *name);

/* 0, or IDEM_EINVALID: it was opened before a fork. */
int idem__journal_check(const struct idem_journal *journal,
                        struct idem_error *error);

/* Sets the error for errno: "cannot DO NAME: why". Returns its code. */
int idem__journal_errno(struct idem_error *error, const char *doing,
                        const char *name);

/* Names in a directory, in their order. */
struct idem__journal_names {
    char (*names)[IDEM__JOURNAL_NAME_MAX + 1];
    size_t len;
    size_t room;
};

/* Calls @each for every name but "." and "..", in any order; a name that is too
 * long for ours is cut. What it answers, if not 0, ends it and is returned. */
typedef int idem__journal_name_fn(void *ctx, const char *name,
                                  struct idem_error *error);
int idem__journal_walk(const struct idem_journal *journal,
                       idem__journal_name_fn *each, void *ctx,
                       struct idem_error *error);

/* Those that begin with @prefix, or, if there is a @name, that one. */
int idem__journal_names(const struct idem_journal *journal, const char *prefix,
                        const char *name, struct idem__journal_names *ret_names,
                        struct idem_error *error);
void idem__journal_names_finish(struct idem__journal_names *names);

/* What became of taking hold of a file. */
enum idem__journal_hold {
    IDEM__JOURNAL_HELD,
    IDEM__JOURNAL_BUSY, /* Somebody else holds it. */
    IDEM__JOURNAL_GONE, /* It is not there any more, or is another one now. */
    IDEM__JOURNAL_ODD, /* No regular file, or another user's: it is not ours. */
    IDEM__JOURNAL_ERROR, /* @error says why. */
};

/* Opens the file @name and locks it, for itself alone if @alone. *@ret_fd is the
 * caller's to close, which unlocks it. */
enum idem__journal_hold idem__journal_hold(const struct idem_journal *journal,
                                           const char *name, bool alone,
                                           int *ret_fd, uint64_t *ret_len,
                                           struct idem_error *error);

/* 1 if the file that is open as @fd is still the one called @name, 0 if it is
 * not, -1 with errno if that cannot be said. */
int idem__journal_is_named(const struct idem_journal *journal, int fd,
                           const char *name);

/* Reads @len bytes of a file; the caller frees them.
 *
 * IDEM_EUNAVAILABLE  It cannot be read, or is shorter.
 * IDEM_ENOMEM
 */
int idem__journal_read(int fd, size_t len, uint8_t **ret_bytes,
                       struct idem_error *error);

#endif
