/* Loading libcurl. */
#include "aws/client/curl.h"

#include "core/error.h"

#include <dlfcn.h>
#include <pthread.h>

#define OLDEST 0x075000 /* 7.80: no older one was ever tried. */

static struct {
    pthread_once_t once;
    struct idem__curl functions;
    struct idem_error error; /* code 0: loaded. */
} curl = {.once = PTHREAD_ONCE_INIT};

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
    if (!find(library, "curl_" #name, &curl.functions.name)) {                 \
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
        (void)idem__error(&curl.error, IDEM_ECONFIG,
                          "libcurl is needed to talk to AWS and is not "
                          "installed: apt install libcurl4");
        return;
    }
    if (!find_all(library)) {
        (void)idem__error(&curl.error, IDEM_ECONFIG,
                          "libcurl cannot be used: it lacks a function");
        (void)dlclose(library);
        return;
    }
    version = curl.functions.version_info(CURLVERSION_NOW);
    if (version->version_num < OLDEST) {
        (void)idem__error(&curl.error, IDEM_ECONFIG,
                          "libcurl is %s; to talk to AWS 7.80 or newer is "
                          "needed",
                          version->version);
        (void)dlclose(library);
        return;
    }
    /* Counted by libcurl, and safe beside other users of it in this process from
     * 7.84 on; it cannot be undone either. */
    if (curl.functions.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        (void)idem__error(&curl.error, IDEM_ECONFIG,
                          "libcurl %s could not be set up", version->version);
    }
}

int idem__curl_get(const struct idem__curl **ret_curl,
                   struct idem_error *ret_error)
{
    (void)pthread_once(&curl.once, load);
    if (curl.error.code != 0) {
        return idem__error(ret_error, curl.error.code, "%s", curl.error.text);
    }
    *ret_curl = &curl.functions;
    return 0;
}
