/* Parses the URL of a store, and checks, creates and shares the files in its place. */
#include "store/sqlite/place.h"

#include "core/error.h"
#include "store/sqlite/filesystem.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Options ---- */

static int find_group(const char *name, gid_t *ret_gid,
                      struct idem_error *error)
{
    /* Too small for a very large group, which is given by its number. */
    char buf[4096];
    struct group *found = NULL;
    struct group group;
    char *end;
    unsigned long number = strtoul(name, &end, 10);

    if (*end == '\0' && name[0] >= '0' && name[0] <= '9' &&
        number < (gid_t)-1) {
        *ret_gid = (gid_t)number;
        return 0;
    }
    (void)getgrnam_r(name, &group, buf, sizeof(buf), &found);
    if (found == NULL) {
        return idem__error(
            error, IDEM_ECONFIG,
            "unknown group \"%.60s\", or one that is too large to be looked "
            "up: give its number",
            name);
    }
    *ret_gid = group.gr_gid;
    return 0;
}

/* The part after "NAME=" in @option; NULL if it has another name. */
static const char *value_of(const char *option, const char *name)
{
    size_t len = strlen(name);

    return strncmp(option, name, len) == 0 && option[len] == '='
               ? option + len + 1
               : NULL;
}

static int take_option(const char *option, struct idem__place *place,
                       struct idem_error *error)
{
    const char *group = value_of(option, "group");
    const char *network = value_of(option, "network");
    const char *create = value_of(option, "create");

    if (group != NULL && group[0] != '\0') {
        return find_group(group, &place->gid, error);
    }
    if (network != NULL && strcmp(network, "yes") == 0) {
        place->network = true;
        return 0;
    }
    if (create != NULL && strcmp(create, "no") == 0) {
        place->no_create = true;
        return 0;
    }
    return idem__error(error, IDEM_EINVALID,
                       "unknown option \"%.60s\" in the store's URL; a SQLite "
                       "store takes group=NAME, network=yes and create=no, "
                       "joined by \"&\"",
                       option);
}

static int take_options(const char *text, struct idem__place *place,
                        struct idem_error *error)
{
    int rc = 0;

    do {
        size_t len = strcspn(text, "&");
        char option[300] = "";

        if (len < sizeof(option)) {
            memcpy(option, text, len);
        }
        rc = take_option(option, place, error);
        text += len;
    } while (rc == 0 && *text++ != '\0');
    return rc;
}

/* The length of the last part of @path. */
static size_t name_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return strlen(slash != NULL ? slash + 1 : path);
}

static int fail_long(struct idem_error *error)
{
    return idem__error(error, IDEM_ECONFIG,
                       "the store's path is longer than %d bytes",
                       IDEM__PATH_MAX);
}

int idem__path_split(const char *text, struct idem__place *ret_place,
                     struct idem_error *error)
{
    size_t len = text == NULL ? 0 : strcspn(text, "?");

    memset(ret_place, 0, sizeof(*ret_place));
    ret_place->gid = (gid_t)-1;
    if (len > IDEM__PATH_MAX) {
        return fail_long(error);
    }
    if (len > 0) {
        memcpy(ret_place->path, text, len);
    }
    if (name_length(ret_place->path) > IDEM__NAME_MAX) {
        return idem__error(error, IDEM_ECONFIG,
                           "the name of the store's file is longer than %d "
                           "bytes",
                           IDEM__NAME_MAX);
    }
    if (text == NULL || text[len] == '\0') {
        return 0;
    }
    return take_options(text + len + 1, ret_place, error);
}

/* ---- What lies there ---- */

static int check_file_system(const char *path, struct idem__place *place,
                             struct idem_error *error)
{
    return place->network ? 0
                          : idem__filesystem_check(path, &place->test, error);
}

void idem__path_directory(const char *path,
                          char ret_directory[IDEM__PATH_MAX + 1])
{
    const char *slash = strrchr(path, '/');
    size_t len;

    if (slash == NULL) {
        (void)strcpy(ret_directory, ".");
        return;
    }
    len = slash == path ? 1 : (size_t)(slash - path);
    memcpy(ret_directory, path, len);
    ret_directory[len] = '\0';
}

int idem__path_absolute(struct idem__place *place, struct idem_error *error)
{
    char directory[PATH_MAX];
    char path[sizeof(place->path)];

    if (place->path[0] == '/') {
        return 0;
    }
    if (getcwd(directory, sizeof(directory)) == NULL) {
        return idem__error(error, IDEM_ECONFIG,
                           "cannot find the current directory: %s",
                           strerror(errno));
    }
    (void)strcpy(path, place->path);
    return snprintf(place->path, sizeof(place->path), "%s/%s",
                    strcmp(directory, "/") == 0 ? "" : directory,
                    path) <= IDEM__PATH_MAX
               ? 0
               : fail_long(error);
}

static int check_file(struct idem__place *place, const struct stat *st,
                      struct idem_error *error)
{
    char directory[IDEM__PATH_MAX + 1];
    int rc;

    if (!S_ISREG(st->st_mode)) {
        return idem__error(error, IDEM_EDENIED,
                           "%.120s is %s and not a regular file: name %s",
                           place->path,
                           S_ISDIR(st->st_mode)    ? "a directory"
                           : S_ISLNK(st->st_mode)  ? "a symbolic link"
                           : S_ISFIFO(st->st_mode) ? "a pipe"
                                                   : "a device",
                           S_ISDIR(st->st_mode)   ? "a file in it"
                           : S_ISLNK(st->st_mode) ? "the file that it points to"
                                                  : "another file");
    }
    if ((st->st_mode & S_IWOTH) != 0) {
        return idem__error(error, IDEM_EDENIED,
                           "%.120s is writable by anyone: chmod o-w it",
                           place->path);
    }
    idem__path_directory(place->path, directory);
    rc = idem__names_check(place->path, directory, error);
    return rc != 0 ? rc : check_file_system(place->path, place, error);
}

static int check_directory(struct idem__place *place, struct idem_error *error)
{
    char directory[IDEM__PATH_MAX + 1];
    struct stat st;

    idem__path_directory(place->path, directory);
    if (stat(directory, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return idem__error(
            error, errno == EACCES ? IDEM_EDENIED : IDEM_ECONFIG,
            "the directory %.120s does not exist: create it first", directory);
    }
    return check_file_system(directory, place, error);
}

int idem__path_check(struct idem__place *place, struct idem_error *error)
{
    struct stat st;

    if (place->path[0] == '\0') {
        return idem__error(error, IDEM_ECONFIG,
                           "the store's path is empty: write sqlite:PATH");
    }
    if (lstat(place->path, &st) == 0) {
        place->exists = true;
        return check_file(place, &st, error);
    }
    if (errno == ENOENT) {
        return check_directory(place, error);
    }
    return idem__error(error, errno == EACCES ? IDEM_EDENIED : IDEM_ECONFIG,
                       "cannot inspect %.120s: %s", place->path,
                       strerror(errno));
}

/* ---- Several users of one store ---- */

/* True if this process may give a file to the group @gid. */
static bool is_member(gid_t gid)
{
    gid_t groups[1024];
    int n = getgroups((int)(sizeof(groups) / sizeof(groups[0])), groups);

    if (geteuid() == 0 || getegid() == gid) {
        return true;
    }
    while (n > 0) {
        if (groups[--n] == gid) {
            return true;
        }
    }
    return false;
}

static bool is_shared(const struct stat *st)
{
    return (st->st_mode & 0060) == 0060;
}

int idem__path_share(const char *path, gid_t gid, struct idem__share *ret_share,
                     struct idem_error *error)
{
    bool wanted = gid != (gid_t)-1;
    struct idem__share share = {
        .mode = wanted ? 0660 : 0600,
        .uid = (uid_t)-1,
        .gid = gid,
    };
    struct stat st;

    if (lstat(path, &st) == 0) {
        if (wanted && (st.st_gid != gid || !is_shared(&st))) {
            return idem__error(error, IDEM_ECONFIG,
                               "%.100s is there already and not shared with "
                               "group %lu: chgrp and chmod 660 all its files",
                               path, (unsigned long)gid);
        }
        share.mode = is_shared(&st) ? 0660 : 0600;
        share.gid = is_shared(&st) ? st.st_gid : (gid_t)-1;
        /* A file that root makes belongs to the owner of the store. */
        if (geteuid() == 0) {
            share.uid = st.st_uid;
            share.gid = st.st_gid;
        }
    } else if (wanted && !is_member(gid)) {
        return idem__error(error, IDEM_EDENIED,
                           "cannot share %.100s with group %lu: only its "
                           "members and root can",
                           path, (unsigned long)gid);
    }
    *ret_share = share;
    return 0;
}

/* Gives a file that was just created its owner, group and mode. 0, or -1 with errno. */
static int hand_over(int fd, const struct idem__share *share)
{
    bool given = share->uid != (uid_t)-1 || share->gid != (gid_t)-1;

    if (given && fchown(fd, share->uid, share->gid) != 0) {
        return -1;
    }
    return fchmod(fd, share->mode);
}

int idem__path_open(const char *path, const struct idem__share *share)
{
    const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(path, flags | O_CREAT | O_EXCL, 0600);
    int err;

    if (fd < 0) {
        return errno == EEXIST ? open(path, flags) : -1;
    }
    if (hand_over(fd, share) != 0) {
        err = errno;
        /* Another process may have it open already: keep it. */
        (void)close(fd);
        errno = err;
        return -1;
    }
    return fd;
}

static int code_of_open(int err)
{
    switch (err) {
    case ENOSPC:
    case EDQUOT:
        return IDEM_EFULL;
    case EMFILE:
    case ENFILE:
        return IDEM_EUNAVAILABLE;
    default:
        return IDEM_EDENIED;
    }
}

int idem__path_create(const char *path, const struct idem__share *share,
                      struct idem_error *error)
{
    struct stat st;
    int fd;

    if (lstat(path, &st) == 0) {
        return 0; /* Do not open it: closing it would drop SQLite's locks. */
    }
    fd = idem__path_open(path, share);
    if (fd >= 0) {
        (void)close(fd);
        return 0;
    }
    return idem__error(error, code_of_open(errno),
                       code_of_open(errno) == IDEM_EFULL
                           ? "cannot create %.120s: %s; make room on its disk"
                       : code_of_open(errno) == IDEM_EDENIED
                           ? "cannot create %.120s: %s; name a directory that "
                             "this user may write to"
                           : "cannot create %.120s: %s",
                       path, strerror(errno));
}

void idem__path_share_rest(const char *path)
{
    static const char *const suffixes[] = {"-wal", "-shm"};
    char name[IDEM__PATH_MAX + 8];
    struct stat store;
    struct stat st;
    size_t i;

    if (lstat(path, &store) != 0 || !is_shared(&store)) {
        return;
    }
    for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        (void)snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        if (lstat(name, &st) == 0 && st.st_gid != store.st_gid) {
            /* Only the owner of a file can do that: the process that created it. */
            (void)!lchown(name, (uid_t)-1, store.st_gid);
        }
    }
}
