/* Initializes libcurl, and sets up its handles. */
#include "aws/client/curl.h"

#include "base/host.h"
#include "core/error.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

#define OLDEST 0x075500 /* 7.85: CURLOPT_PROTOCOLS_STR. */

static struct {
    pthread_once_t once;
    struct idem_error error; /* code 0: initialized. */
} libcurl = {.once = PTHREAD_ONCE_INIT};

static void make_ready(void)
{
    const curl_version_info_data *version = curl_version_info(CURLVERSION_NOW);

    if (version->version_num < OLDEST) {
        (void)idem__error(&libcurl.error, IDEM_ECONFIG,
                          "libcurl is %s, but AWS needs 7.85 or newer",
                          version->version);
        return;
    }
    /* libcurl counts these calls. Since 7.84 another user of it in this process may make
     * one at the same time. We never undo ours. */
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        (void)idem__error(&libcurl.error, IDEM_ECONFIG,
                          "libcurl %s could not be set up", version->version);
    }
}

int idem__curl_ready(struct idem_error *ret_error)
{
    (void)pthread_once(&libcurl.once, make_ready);
    return libcurl.error.code == 0 ? 0
                                   : idem__error(ret_error, libcurl.error.code,
                                                 "%s", libcurl.error.text);
}

/* ---- Handles ----------------------------------------------------------- */

curl_socket_t idem__curl_socket(void *ctx, curlsocktype purpose,
                                struct curl_sockaddr *address)
{
    (void)ctx;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC,
                  address->protocol);
}

bool idem__curl_set_up(CURL *easy, const struct idem__curl_setup *setup)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = curl_easy_setopt;
    const char *ca_file =
        idem__ca_file(setup->ca_file,
                      curl_version_info(CURLVERSION_NOW)->cainfo);
    int bad = 0;

    bad |= set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    bad |= set(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    bad |= set(easy, CURLOPT_FOLLOWLOCATION, 0L);
    bad |= set(easy, CURLOPT_PATH_AS_IS, 1L);
    bad |= set(easy, CURLOPT_NOSIGNAL, 1L);
    bad |= set(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)setup->connect_ms);
    bad |= set(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    bad |= set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    bad |= set(easy, CURLOPT_USERAGENT, "idem/" IDEM_VERSION);
    bad |= set(easy, CURLOPT_ERRORBUFFER, setup->why);
    bad |= set(easy, CURLOPT_OPENSOCKETFUNCTION, idem__curl_socket);
    if (setup->local) {
        bad |= set(easy, CURLOPT_PROXY, "");
    }
    if (ca_file != NULL) {
        bad |= set(easy, CURLOPT_CAINFO, ca_file);
    }
    /* Since 7.87: a request that ends does not wait for the lookup of its host name. */
    (void)set(easy, CURLOPT_QUICK_EXIT, 1L);
    return bad == 0;
}

/* ---- Blocking signals around calls of libcurl ---- */

void idem__quiet_begin(struct idem__quiet *quiet)
{
    sigset_t all;

    (void)sigfillset(&all);
    quiet->blocked = pthread_sigmask(SIG_SETMASK, &all, &quiet->before) == 0;
}

void idem__quiet_end(struct idem__quiet *quiet)
{
    static const struct timespec at_once = {0, 0};
    sigset_t pipe;

    if (!quiet->blocked) {
        return;
    }
    /* A SIGPIPE that was not blocked before was not pending before: this one is ours. */
    if (sigismember(&quiet->before, SIGPIPE) == 0) {
        (void)sigemptyset(&pipe);
        (void)sigaddset(&pipe, SIGPIPE);
        while (sigtimedwait(&pipe, NULL, &at_once) < 0 && errno == EINTR) {
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
}
