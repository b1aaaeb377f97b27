/* Loading libcurl, and setting up its handles. */
#include "aws/client/curl.h"

#include "aws/client/ca.h"
#include "core/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/socket.h>

#define OLDEST 0x075500 /* 7.85: CURLOPT_PROTOCOLS_STR. */

static struct {
    pthread_once_t once;
    struct idem__curl functions;
    struct idem_error error; /* code 0: loaded. */
} loaded = {.once = PTHREAD_ONCE_INIT};

/* Debian has one build for each TLS library, under names of their own. */
static void *open_library(void)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *library = NULL;
    size_t i;

    for (i = 0; library == NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

/* Sets the function at @slot. False: the library has none of this name. */
static bool find(void *library, const char *name, void *slot)
{
    void *function = dlsym(library, name);

    memcpy(slot, &function, sizeof(function));
    return function != NULL;
}

static bool find_all(void *library)
{
#define IDEM__X(type, name, arguments)                                         \
    if (!find(library, "curl_" #name, &loaded.functions.name)) {               \
        return false;                                                          \
    }
    IDEM__CURL_MAP(IDEM__X)
#undef IDEM__X
    return true;
}

static void load(void)
{
    void *library = open_library();
    const curl_version_info_data *version;

    if (library == NULL) {
        (void)idem__error(&loaded.error, IDEM_ECONFIG,
                          "libcurl is needed to talk to AWS and is not "
                          "installed: apt install libcurl4");
        return;
    }
    if (!find_all(library)) {
        (void)idem__error(&loaded.error, IDEM_ECONFIG,
                          "libcurl cannot be used: it lacks a function");
        (void)dlclose(library);
        return;
    }
    version = loaded.functions.version_info(CURLVERSION_NOW);
    if (version->version_num < OLDEST) {
        (void)idem__error(&loaded.error, IDEM_ECONFIG,
                          "libcurl is %s; to talk to AWS 7.85 or newer is "
                          "needed",
                          version->version);
        (void)dlclose(library);
        return;
    }
    /* Counted by libcurl, and safe beside other users of it in this process from
     * 7.84 on; it cannot be undone either. */
    if (loaded.functions.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        (void)idem__error(&loaded.error, IDEM_ECONFIG,
                          "libcurl %s could not be set up", version->version);
    }
}

int idem__curl_get(const struct idem__curl **ret_curl,
                   struct idem_error *ret_error)
{
    (void)pthread_once(&loaded.once, load);
    if (loaded.error.code != 0) {
        return idem__error(ret_error, loaded.error.code, "%s",
                           loaded.error.text);
    }
    *ret_curl = &loaded.functions;
    return 0;
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

bool idem__curl_set_up(const struct idem__curl *curl, CURL *easy,
                       const struct idem__curl_setup *setup)
{
    CURLcode (*set)(CURL *, CURLoption, ...) = curl->easy_setopt;
    const char *ca_file =
        idem__aws_ca_file(setup->ca_file,
                          curl->version_info(CURLVERSION_NOW)->cainfo);
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
    /* From 7.87: a deadline does not wait for a name that is being looked up. */
    (void)set(easy, CURLOPT_QUICK_EXIT, 1L);
    return bad == 0;
}
