/* libcurl: made ready once in a process, and its handles set up alike. */
#ifndef IDEM_AWS_CLIENT_CURL_H
#define IDEM_AWS_CLIENT_CURL_H

#include <curl/curl.h>
#include <idem.h>
#include <signal.h>
#include <stdbool.h>

/* Makes libcurl ready for this process when it is first needed, which takes some
 * milliseconds; later calls return the same.
 *
 * IDEM_ECONFIG  It is too old (7.85 is needed), or cannot be set up.
 */
int idem__curl_ready(struct idem_error *ret_error);

/* How a handle speaks for us; the strings are kept or copied by libcurl. */
struct idem__curl_setup {
    const char *ca_file; /* NULL: the system's. */
    bool local;          /* No proxy is asked. */
    int64_t connect_ms;  /* At most, for a connection with TLS. */
    char *why;           /* CURL_ERROR_SIZE bytes for libcurl's sentence. Kept
                            as long as @easy. */
};

/* A socket for libcurl's CURLOPT_OPENSOCKETFUNCTION: its own ones would be inherited
 * by children of this process. */
curl_socket_t idem__curl_socket(void *ctx, curlsocktype purpose,
                                struct curl_sockaddr *address);

/* Makes @easy, which is new or was reset, speak HTTP/1.1 over http:// and https://
 * alone: TLS 1.2 or newer, no redirects, no signals, sockets that children do not
 * inherit, the path of a URL as it was signed, "idem/VERSION" as the user agent;
 * a proxy as the usual variables say. False: memory ran out. */
bool idem__curl_set_up(CURL *easy, const struct idem__curl_setup *setup);

/* ---- Signals ---- */

/* Keeping signals out while TLS libraries write and resolver threads start. */

struct idem__quiet {
    sigset_t before;
    bool blocked;
};

/* Blocks all signals of this thread, so that a thread that libcurl starts now has
 * them blocked too, and SIGPIPE does not end the process. */
void idem__quiet_begin(struct idem__quiet *quiet);

/* Takes back a SIGPIPE that was raised meanwhile and lets signals in again. */
void idem__quiet_end(struct idem__quiet *quiet);

#endif
