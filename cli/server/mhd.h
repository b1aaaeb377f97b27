/* mhd.h: libmicrohttpd, loaded when it is needed. */
#ifndef IDEM_CLI_SERVER_MHD_H
#define IDEM_CLI_SERVER_MHD_H

#include <microhttpd.h>

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

#endif
