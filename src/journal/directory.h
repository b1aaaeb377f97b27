/* The directory of a journal: its names, its files, their locks. */
#ifndef IDEM_JOURNAL_DIRECTORY_H
#define IDEM_JOURNAL_DIRECTORY_H

#include "journal/entry.h"

struct idem_journal {
    int fd;
    long pid; /* That opened it. */
    uint64_t bytes_max;
    size_t entries_max;
    char directory[]; /* As it was opened, for messages. */
};

/* The parts of a journal: one directory for each first byte of a record's id, and
 * at last the journal's own directory, where older versions keep all. Each lookup
 * reads two of them, and whoever reads all reads one after the other, so neither
 * time nor memory grows with the journal.
 *
 * A name is the path of a file below the journal's directory. */
enum {
    IDEM__JOURNAL_FLAT = 256,
    IDEM__JOURNAL_PARTS = 257,
    IDEM__JOURNAL_NAME_MAX = 79, /* Longer names are of other files. */
};

#define IDEM__JOURNAL_BY_RECORD "by-record"
#define IDEM__JOURNAL_USAGE "usage"

/* The path of @part below the journal's directory. */
void idem__journal_part_path(unsigned part, char ret_path[16]);

/* The part in which the file of the entry @base belongs. */
unsigned idem__journal_part_of(const char *base);

/* The name of the file @base in @part; cut where it is too long for ours. */
void idem__journal_file_path(unsigned part, const char *base,
                             char ret_name[IDEM__JOURNAL_NAME_MAX + 1]);

/* @name without the directories before it. */
const char *idem__journal_base(const char *name);

/* Which parts are there. */
int idem__journal_parts(const struct idem_journal *journal,
                        bool ret_there[IDEM__JOURNAL_PARTS],
                        struct idem_error *error);

/* The facts in the name of a file. */
enum idem__journal_kind {
    IDEM__JOURNAL_FOREIGN,
    IDEM__JOURNAL_PENDING, /* .idj */
    IDEM__JOURNAL_NEW,     /* .N.new */
    IDEM__JOURNAL_LOST,    /* .lost */
    IDEM__JOURNAL_BAD,     /* .bad */
};

/* @name may have directories before it. */
enum idem__journal_kind idem__journal_kind_of(const char *name);

/* 0, or IDEM_EINVALID: it was opened before a fork. */
int idem__journal_check(const struct idem_journal *journal,
                        struct idem_error *error);

/* Sets the error for errno: "cannot DO NAME: why". Returns its code. */
int idem__journal_errno(struct idem_error *error, const char *doing,
                        const char *name);

/* Names of files. */
struct idem__journal_names {
    char (*names)[IDEM__JOURNAL_NAME_MAX + 1];
    size_t len;
    size_t room;
};

/* Calls @each for every file in @part, in any order; a name that is too long for
 * ours is cut. Its answer, if not 0, ends it and is returned. A part that is
 * not there is empty. */
typedef int idem__journal_name_fn(void *ctx, const char *name,
                                  struct idem_error *error);
int idem__journal_walk(const struct idem_journal *journal, unsigned part,
                       idem__journal_name_fn *each, void *ctx,
                       struct idem_error *error);

/* Adds those in @part whose base begins with @prefix to @names, which begins as
 * zeros, and may be finished whatever this answers. *@ret_seen, where it is not
 * NULL, is how many there are with any prefix. */
int idem__journal_names(const struct idem_journal *journal, unsigned part,
                        const char *prefix, struct idem__journal_names *names,
                        size_t *ret_seen, struct idem_error *error);

/* By store, record and status: of one record first what says most. */
void idem__journal_names_sort(struct idem__journal_names *names);
void idem__journal_names_finish(struct idem__journal_names *names);

/* The result of locking a file. */
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
