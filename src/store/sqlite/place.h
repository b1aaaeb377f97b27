/* The place of a store, from its URL: its path, and the options after "?". */
#ifndef IDEM_STORE_SQLITE_PLACE_H
#define IDEM_STORE_SQLITE_PLACE_H

#include <idem.h>
#include <sys/types.h>

/* SQLite refuses longer ones. */
#define IDEM__PATH_MAX 480

/* Of its last part: it leaves room for "-journal", the longest suffix of the
 * names of the files beside it. */
#define IDEM__NAME_MAX 247

/* A store's URL after "sqlite:", taken apart, and what lies there. */
struct idem__place {
    char path[IDEM__PATH_MAX + 1];
    gid_t gid;      /* "group=NAME": (gid_t)-1 without. */
    bool network;   /* "network=yes": a network file system is taken too. */
    bool no_create; /* "create=no": a store is there already. */
    bool exists;    /* There is a file. */
    bool test;      /* The locks of its file system must be tested. */
};

/* Takes "PATH[?OPTION[&OPTION]]" apart; a number may be the name of a group.
 *
 * IDEM_EINVALID  A "?" that is followed by something else.
 * IDEM_ECONFIG   The path is too long, or the group does not exist.
 */
int idem__path_split(const char *text, struct idem__place *ret_place,
                     struct idem_error *error);

/* The directory that @path is in. */
void idem__path_directory(const char *path,
                          char ret_directory[IDEM__PATH_MAX + 1]);

/* Checks the form of the path, what lies there, and the file system; fills in
 * the rest of @place.
 *
 * IDEM_ECONFIG  Empty or too long, no such directory, a network file system, a
 *               file with several names.
 * IDEM_EDENIED  Not a regular file, or one that anyone may write to.
 */
int idem__path_check(struct idem__place *place, struct idem_error *error);

/* The owner of a file of the store when it is made. */
struct idem__share {
    mode_t mode; /* 0600, or 0660 for a group. */
    uid_t uid;   /* (uid_t)-1: whoever makes it. */
    gid_t gid;   /* (gid_t)-1: likewise. */
};

/* How the files beside @path are shared: like @path itself if it is there, else
 * with @gid.
 *
 * IDEM_ECONFIG  It is there, and not shared with @gid.
 * IDEM_EDENIED  It is not there, and the caller is not in the group.
 */
int idem__path_share(const char *path, gid_t gid, struct idem__share *ret_share,
                     struct idem_error *error);

/* Opens @path, and makes it as @share says if it is not there. Returns a
 * descriptor, or -1 with errno. */
int idem__path_open(const char *path, const struct idem__share *share);

/* Makes an empty file if there is none. */
int idem__path_create(const char *path, const struct idem__share *share,
                      struct idem_error *error);

/* SQLite makes its files with the mode of @path, but with the group of whoever
 * makes them: gives them the group of @path. Without a descriptor, because
 * closing one would drop the locks of the process. */
void idem__path_share_rest(const char *path);

#endif
