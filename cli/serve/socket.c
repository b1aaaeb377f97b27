/* The socket at which clients connect. */
#include "serve/conn.h"

#include "text/error.h"
#include "text/exit_status.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG = 128,
    HANDED_OVER = 3 /* The first descriptor of sd_listen_fds(3). */
};

/* ---- From systemd -------------------------------------------------------- */

static bool is_ours(const char *name, long wanted)
{
    const char *text = getenv(name);
    char *end;

    return text != NULL && *text != '\0' && strtol(text, &end, 10) == wanted &&
           *end == '\0';
}

static bool is_listening(int fd)
{
    int listens = 0;
    int domain = 0;
    socklen_t len = sizeof(listens);

    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
           listens != 0 && domain == AF_UNIX;
}

static int take_over(int *ret_fd)
{
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    if (!is_listening(HANDED_OVER)) {
        cli_say("LISTEN_FDS: descriptor 3 is not a listening Unix socket "
                "(ListenStream=PATH)");
        return CLI_CONFIG;
    }
    (void)fcntl(HANDED_OVER, F_SETFD, FD_CLOEXEC);
    (void)fcntl(HANDED_OVER, F_SETFL, O_NONBLOCK);
    *ret_fd = HANDED_OVER;
    return 0;
}

/* ---- A new one ----------------------------------------------------------- */

static int failed(const char *path, const char *what)
{
    cli_say("cannot %s the socket %s: %s", what, path, strerror(errno));
    return errno == EACCES || errno == EPERM ? CLI_DENIED : CLI_CONFIG;
}

/* A socket that nobody listens at is left over from a server that was killed. */
static int clear(const char *path, const struct sockaddr_un *address)
{
    struct stat st;
    int fd;
    int rc;

    if (lstat(path, &st) != 0) {
        return 0;
    }
    if (!S_ISSOCK(st.st_mode)) {
        cli_say("%s: it is there, and not a socket", path);
        return CLI_CONFIG;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    rc = connect(fd, (const struct sockaddr *)address, sizeof(*address));
    if (rc != 0 && errno == ECONNREFUSED) {
        (void)unlink(path);
    }
    (void)close(fd);
    if (rc == 0) {
        cli_say("%s: another server listens there", path);
        return CLI_CONFIG;
    }
    return 0;
}

static int find_group(const char *group, gid_t *ret_gid)
{
    const struct group *found;
    char *end;

    if (group == NULL) {
        *ret_gid = (gid_t)-1;
        return 0;
    }
    found = getgrnam(group);
    *ret_gid = found != NULL ? found->gr_gid : (gid_t)strtoul(group, &end, 10);
    if (found == NULL && (*group == '\0' || *end != '\0')) {
        cli_say("--group: there is no group \"%s\"", group);
        return CLI_CONFIG;
    }
    return 0;
}

/* Nobody else may connect before the socket has its group. */
static int bind_to(const char *path, const struct sockaddr_un *address, int fd,
                   gid_t gid)
{
    mode_t before = umask(S_IXUSR | S_IRWXG | S_IRWXO);
    int rc = bind(fd, (const struct sockaddr *)address, sizeof(*address));

    (void)umask(before);
    if (rc != 0) {
        return failed(path, "make");
    }
    if (gid != (gid_t)-1 &&
        (chown(path, (uid_t)-1, gid) != 0 ||
         chmod(path, S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP) != 0)) {
        return failed(path, "give a group to");
    }
    return listen(fd, BACKLOG) != 0 ? failed(path, "listen at") : 0;
}

static int make(const char *path, gid_t gid, int *ret_fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int status;
    int fd;

    if (strlen(path) >= sizeof(address.sun_path)) {
        cli_say("--socket: a path has at most %zu bytes",
                sizeof(address.sun_path) - 1);
        return CLI_USAGE;
    }
    (void)strcpy(address.sun_path, path);
    status = clear(path, &address);
    if (status != 0) {
        return status;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return failed(path, "make");
    }
    status = bind_to(path, &address, fd, gid);
    if (status != 0) {
        (void)close(fd);
        return status;
    }
    *ret_fd = fd;
    return 0;
}

int serve_socket_open(const char *path, const char *group, int *ret_fd,
                      bool *ret_made)
{
    gid_t gid;
    int status;

    *ret_made = false;
    if (is_ours("LISTEN_PID", getpid()) && is_ours("LISTEN_FDS", 1)) {
        return take_over(ret_fd);
    }
    status = find_group(group, &gid);
    if (status == 0) {
        status = make(path, gid, ret_fd);
    }
    *ret_made = status == 0;
    return status;
}

void serve_socket_close(const char *path, int fd, bool made)
{
    if (made) {
        (void)unlink(path);
    }
    (void)close(fd);
}
