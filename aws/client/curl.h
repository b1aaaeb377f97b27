/* libcurl, loaded when it is first needed.
 *
 * It brings some twenty-five libraries with it. A program that uses a local
 * store never pays for them: libidem is not linked with libcurl but opens it
 * here.
 */
#ifndef IDEM_AWS_CLIENT_CURL_H
#define IDEM_AWS_CLIENT_CURL_H

#include <idem.h>

#include <curl/curl.h>

/* The functions that we use, with the types of <curl/curl.h>. */
#define IDEM__CURL_MAP(IDEM__X)                                                \
    IDEM__X(CURLcode, global_init, (long))                                     \
    IDEM__X(curl_version_info_data *, version_info, (CURLversion))             \
    IDEM__X(CURL *, easy_init, (void))                                         \
    IDEM__X(void, easy_cleanup, (CURL *))                                      \
    IDEM__X(CURLcode, easy_setopt, (CURL *, CURLoption, ...))                  \
    IDEM__X(void, easy_reset, (CURL *))                                        \
    IDEM__X(CURLcode, easy_perform, (CURL *))                                  \
    IDEM__X(CURLcode, easy_getinfo, (CURL *, CURLINFO, ...))                   \
    IDEM__X(const char *, easy_strerror, (CURLcode))                           \
    IDEM__X(CURLM *, multi_init, (void))                                       \
    IDEM__X(CURLMcode, multi_cleanup, (CURLM *))                               \
    IDEM__X(CURLMcode, multi_setopt, (CURLM *, CURLMoption, ...))              \
    IDEM__X(CURLMcode, multi_add_handle, (CURLM *, CURL *))                    \
    IDEM__X(CURLMcode, multi_remove_handle, (CURLM *, CURL *))                 \
    IDEM__X(CURLMcode, multi_socket_action,                                    \
            (CURLM *, curl_socket_t, int, int *))                              \
    IDEM__X(CURLMcode, multi_perform, (CURLM *, int *))                        \
    IDEM__X(CURLMcode, multi_poll,                                             \
            (CURLM *, struct curl_waitfd *, unsigned, int, int *))             \
    IDEM__X(CURLMcode, multi_assign, (CURLM *, curl_socket_t, void *))         \
    IDEM__X(CURLMsg *, multi_info_read, (CURLM *, int *))

struct idem__curl {
#define IDEM__X(type, name, arguments) type(*name) arguments;
    IDEM__CURL_MAP(IDEM__X)
#undef IDEM__X
};

/* The functions of libcurl, which is loaded and set up by the first call in this
 * process; all others return the same.
 *
 * IDEM_ECONFIG  It is not installed, too old (7.85 is needed), or cannot be set
 *               up; the sentence says how to mend it.
 */
int idem__curl_get(const struct idem__curl **ret_curl,
                   struct idem_error *ret_error);

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
bool idem__curl_set_up(const struct idem__curl *curl, CURL *easy,
                       const struct idem__curl_setup *setup);

#endif
