/* socket.h: the socket at which clients connect. */
#ifndef IDEM_CLI_SERVE_SOCKET_H
#define IDEM_CLI_SERVE_SOCKET_H

/* A socket that systemd has made for this process, or a new one at @path with mode 0600,
 * or 0660 for @group (may be NULL). *@ret_made: serve_socket_close() removes it. 0 or an
 * exit status, after saying why. */
int serve_socket_open(const char *path, const char *group, int *ret_fd,
                      _Bool *ret_made);

void serve_socket_close(const char *path, int fd, _Bool made);

#endif
