/* libcurl: its initialization, once in a process, and the common options of its
 * handles. */
#ifndef IDEM_AWS_CLIENT_CURL_H
#define IDEM_AWS_CLIENT_CURL_H

#include <curl/curl.h>
#include <idem.h>
#include <signal.h>
#include <stdbool.h>

/* Initializes libcurl at the first call, which takes some milliseconds; later calls
 * return the same.
 *
 * IDEM_ECONFIG  It is too old (7.85 is needed), or its initialization failed.
 */
int idem__curl_ready(struct idem_error *ret_error);

/* The options of a handle. libcurl copies the strings, except why. */
struct idem__curl_setup {
    const char *ca_file; /* NULL: the system's. */
    bool local;          /* Use no proxy. */
    int64_t connect_ms;  /* At most, for a connection with TLS. */
    char *why;           /* CURL_ERROR_SIZE bytes for libcurl's message, to be
                            kept as long as @easy. */
};

/* Opens a socket for CURLOPT_OPENSOCKETFUNCTION. Children of this process would inherit
 * those that libcurl opens by itself. */
curl_socket_t idem__curl_socket(void *ctx, curlsocktype purpose,
                                struct curl_sockaddr *address);

/* Sets up @easy, which is new or was reset, for HTTP/1.1 over http:// and https:// only:
 * TLS 1.2 or newer, no redirects, no signals, sockets that children do not inherit, the
 * path of a URL as it was signed, "idem/VERSION" as the user agent, and a proxy as the
 * usual variables set it. False: memory ran out. */
bool idem__curl_set_up(CURL *easy, const struct idem__curl_setup *setup);

/* ---- Signals ---- */

/* Blocks signals while TLS libraries write and resolver threads start. */

struct idem__quiet {
    sigset_t before;
    bool blocked;
};

/* Blocks all signals in this thread, so that they are also blocked in a thread that
 * libcurl starts now, and SIGPIPE does not end the process. */
void idem__quiet_begin(struct idem__quiet *quiet);

/* Discards a SIGPIPE that was raised meanwhile, and restores the signal mask. */
void idem__quiet_end(struct idem__quiet *quiet);

#endif
