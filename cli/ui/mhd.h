/* mhd.h: libmicrohttpd, loaded when it is needed. */
#ifndef IDEM_CLI_UI_MHD_H
#define IDEM_CLI_UI_MHD_H

#include <microhttpd.h>
#include <sys/socket.h>

#define UI_MHD_MAP(X)                                                          \
    X(start_daemon)                                                            \
    X(stop_daemon)                                                             \
    X(create_response_from_buffer)                                             \
    X(add_response_header)                                                     \
    X(queue_response)                                                          \
    X(destroy_response)                                                        \
    X(lookup_connection_value)                                                 \
    X(create_post_processor)                                                   \
    X(post_process)                                                            \
    X(destroy_post_processor)

struct ui_mhd {
#define X(name) __typeof__(MHD_##name) *name;
    UI_MHD_MAP(X)
#undef X
};

/* NULL after saying why. */
const struct ui_mhd *ui_mhd(void);

/* ---- The socket of the page, which is open before anybody is answered --- */

/* Listens at @address, of IPv4 or IPv6; port 0 is any that is free. The socket,
 * and in *@ret_port which it is; or -1 with errno set. */
int ui_listen(const struct sockaddr *address, unsigned *ret_port);

#endif
