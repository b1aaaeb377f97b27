/* Where a check stopped, in a file. */
#include "text/error.h"
#include "text/exit_status.h"
#include "text/progress.h"
#include "upkeep/check.h"

#include <errno.h>
#include <fcntl.h>
#include <idem/check.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int cannot_read(const char *path, const char *why)
{
    cli_say("cannot read --state %s: %s", path, why);
    return CLI_USAGE;
}

/* The file of somebody else could say that all was read. */
static const char *flaw_of(const struct stat *st)
{
    if (!S_ISREG(st->st_mode)) {
        return "not a regular file";
    }
    if (st->st_uid != geteuid()) {
        return "it belongs to another user";
    }
    return st->st_size > IDEM_CHECK_STATE_MAX
               ? "too long for the state of a check"
               : NULL;
}

static int read_open(const char *path, int fd, void **ret_state,
                     size_t *ret_len)
{
    const char *flaw = NULL;
    struct stat st;
    void *state;
    ssize_t n;

    if (fstat(fd, &st) != 0) {
        return cannot_read(path, strerror(errno));
    }
    flaw = flaw_of(&st);
    if (flaw != NULL) {
        return cannot_read(path, flaw);
    }
    state = malloc((size_t)st.st_size + 1);
    if (state == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    n = read(fd, state, (size_t)st.st_size);
    if (n != (ssize_t)st.st_size) {
        free(state);
        return cannot_read(path, n < 0 ? strerror(errno) : "it changes");
    }
    *ret_state = state;
    *ret_len = (size_t)n;
    return 0;
}

int cli_check_state_read(const char *path, void **ret_state, size_t *ret_len)
{
    int fd =
        open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int status;

    *ret_state = NULL;
    *ret_len = 0;
    if (fd < 0) {
        return errno == ENOENT ? 0 : cannot_read(path, strerror(errno));
    }
    status = read_open(path, fd, ret_state, ret_len);
    (void)close(fd);
    return status;
}

/* A death leaves the state before or this one. */
bool cli_check_state_write(const char *path, const void *state, size_t len)
{
    char *temp = NULL;
    bool done = false;
    int why = ENOMEM;
    int fd;

    if (asprintf(&temp, "%s.%ld.tmp", path, (long)getpid()) < 0) {
        temp = NULL;
    } else {
        fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                  0600);
        done = fd >= 0 && write(fd, state, len) == (ssize_t)len;
        why = errno;
        if (fd >= 0 && close(fd) != 0) {
            done = false;
            why = errno;
        }
        if (done && rename(temp, path) != 0) {
            done = false;
            why = errno;
        }
        if (!done && fd >= 0) {
            (void)unlink(temp);
        }
    }
    free(temp);
    if (!done) {
        cli_progress_hide();
        cli_say("cannot write --state %s: %s; the check goes on, and cannot be "
                "resumed",
                path, strerror(why));
    }
    return done;
}

void cli_check_state_delete(const char *path)
{
    (void)unlink(path);
}
