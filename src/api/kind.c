/* Finds the kind of a store: in libidem, among the registered kinds, or in a library
 * that it loads. */

#include "base/host.h"
#include "contract/kind.h"
#include "core/error.h"

#include <idem/memory.h>
#include <idem/sqlite.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/auxv.h>

/* The number in the names of libidem and of the libraries that bring kinds. */
#define SO_VERSION "0"

static int open_memory(const char *place,
                       const struct idem_open_options *options,
                       struct idem_store **ret_store,
                       struct idem_error *ret_error)
{
    if (place[0] != '\0') {
        return idem__error(ret_error, IDEM_EINVALID,
                           "store \"memory:\" takes no path");
    }
    return idem_memory_open(options, ret_store, ret_error);
}

static const struct idem_store_kind built_in[] = {
    {
        .abi = IDEM_STORE_ABI,
        .size = sizeof(struct idem_store_kind),
        .scheme = "sqlite",
        .example = "sqlite:PATH",
        .open = idem_sqlite_open,
        .create = idem_sqlite_create,
        .check = idem_sqlite_check,
    },
    {
        .abi = IDEM_STORE_ABI,
        .size = sizeof(struct idem_store_kind),
        .scheme = "memory",
        .example = "memory:",
        .open = open_memory,
    },
};

/* Kinds that are in a package of ours, which a message can name. */
static const struct {
    const char *scheme;
    const char *package;
} packages[] = {
    {"dynamodb", "libidem-aws0"},
    {"postgres", "libidem-postgres0"},
    {"postgresql", "libidem-postgres0"},
};

/* Kinds are added and never removed, so a kind that was found stays valid without the
 * mutex. */
static struct {
    pthread_mutex_t mutex;
    const struct idem_store_kind *kinds[IDEM_KINDS_MAX];
    size_t len;
} registered = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Returns the length of the scheme at the start of @text; 0 if there is none. */
static size_t scheme_len(const char *text)
{
    size_t n = 0;

    while ((text[n] >= 'a' && text[n] <= 'z') ||
           (n > 0 && text[n] >= '0' && text[n] <= '9')) {
        n++;
    }
    return n <= IDEM_SCHEME_MAX ? n : 0;
}

static const struct idem_store_kind *find_built_in(const char *scheme)
{
    size_t i;

    for (i = 0; i < sizeof(built_in) / sizeof(built_in[0]); i++) {
        if (strcmp(built_in[i].scheme, scheme) == 0) {
            return &built_in[i];
        }
    }
    return NULL;
}

/* The caller holds the mutex. */
static const struct idem_store_kind *find_registered(const char *scheme)
{
    size_t i;

    for (i = 0; i < registered.len; i++) {
        if (strcmp(registered.kinds[i]->scheme, scheme) == 0) {
            return registered.kinds[i];
        }
    }
    return NULL;
}

/* Compares abi and size before it reads the rest of @kind. */
static int check_kind(const struct idem_store_kind *kind, const char *what,
                      struct idem_error *error)
{
    if (kind->abi != IDEM_STORE_ABI || kind->size != sizeof(*kind)) {
        return idem__error(
            error, IDEM_ECONFIG,
            "%s was built for another version of libidem (ABI %u of %u bytes, "
            "here %u of %zu): install versions that belong together",
            what, (unsigned)kind->abi, (unsigned)kind->size,
            (unsigned)IDEM_STORE_ABI, sizeof(*kind));
    }
    return 0;
}

int idem_kind_register(const struct idem_store_kind *kind,
                       struct idem_error *ret_error)
{
    const struct idem_store_kind *other;
    int rc = check_kind(kind, "the kind of store to register", ret_error);

    if (rc != 0) {
        return rc;
    }
    if (kind->scheme == NULL || kind->open == NULL ||
        scheme_len(kind->scheme) == 0 ||
        kind->scheme[scheme_len(kind->scheme)] != '\0') {
        return idem__error(ret_error, IDEM_EINVALID,
                           "the kind of store to register has no scheme of 1 "
                           "to %d lower-case letters and digits, or no open()",
                           IDEM_SCHEME_MAX);
    }
    (void)pthread_mutex_lock(&registered.mutex);
    other = find_built_in(kind->scheme);
    other = other == NULL ? find_registered(kind->scheme) : other;
    if (other == NULL && registered.len < IDEM_KINDS_MAX) {
        registered.kinds[registered.len++] = kind;
        other = kind;
    }
    (void)pthread_mutex_unlock(&registered.mutex);
    if (other == NULL) {
        return idem__error(ret_error, IDEM_EFULL,
                           "%d kinds of stores are registered already",
                           IDEM_KINDS_MAX);
    }
    if (other != kind) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "another kind of store has the scheme \"%s\"",
                           kind->scheme);
    }
    return 0;
}

/* ---- Libraries --------------------------------------------------------- */

static const char *package_of(const char *scheme)
{
    size_t i;

    for (i = 0; i < sizeof(packages) / sizeof(packages[0]); i++) {
        if (strcmp(packages[i].scheme, scheme) == 0) {
            return packages[i].package;
        }
    }
    return NULL;
}

static int say_unknown(const char *url, struct idem_error *error)
{
    char shown[101];

    return idem__error(error, IDEM_EINVALID,
                       "unknown kind of store \"%s\": use sqlite:PATH, "
                       "dynamodb://TABLE, postgres://HOST/DATABASE or "
                       "memory:%s",
                       idem_url_hide(url, shown, sizeof(shown)),
                       idem__has_loader()
                           ? ""
                           : " (this program is linked statically "
                             "and loads no other kinds)");
}

/* Reports that @library cannot be loaded. @why is the loader's sentence, which begins
 * with the name of the file that it could not find: @library, or a library that it
 * needs. */
static int say_not_loaded(const char *scheme, const char *library,
                          const char *url, const char *why,
                          struct idem_error *error)
{
    const char *package = package_of(scheme);

    why = why == NULL ? "the loader gave no reason" : why;
    if (package != NULL) {
        return idem__error(error, IDEM_ECONFIG,
                           "a store \"%s:\" needs %s, which cannot be loaded "
                           "(%.200s): apt install %s",
                           scheme, library, why, package);
    }
    if (strncmp(why, library, strlen(library)) == 0 &&
        strstr(why, "No such file") != NULL) {
        return say_unknown(url, error);
    }
    return idem__error(error, IDEM_ECONFIG,
                       "a store \"%s:\" needs %s, which cannot be loaded: "
                       "%.200s",
                       scheme, library, why);
}

/* Loads the library of a kind. It stays loaded, because the stores that it opens call
 * into it. */
static int load(const char *scheme, const char *url,
                const struct idem_store_kind **ret_kind,
                struct idem_error *error)
{
    char library[sizeof("libidem-.so." SO_VERSION) + IDEM_SCHEME_MAX];
    char symbol[sizeof("idem__kind") + IDEM_SCHEME_MAX];
    const struct idem_store_kind *kind;
    void *handle;
    int rc;

    if (!idem__has_loader() && package_of(scheme) != NULL) {
        return idem__error(error, IDEM_ECONFIG,
                           "this program is linked statically and has no store "
                           "\"%s:\": take one that loads libraries, with the "
                           "package %s",
                           scheme, package_of(scheme));
    }
    if (!idem__has_loader()) {
        return say_unknown(url, error);
    }
    (void)snprintf(library, sizeof(library), "libidem-%s.so." SO_VERSION,
                   scheme);
    (void)snprintf(symbol, sizeof(symbol), "idem_%s_kind", scheme);
    kind = dlsym(RTLD_DEFAULT, symbol);
    if (kind == NULL && getauxval(AT_SECURE) != 0) {
        return idem__error(error, IDEM_ECONFIG,
                           "a store \"%s:\" needs %s, and a set-user-ID or "
                           "set-group-ID program loads no library: call "
                           "idem_kind_register() in it",
                           scheme, library);
    }
    if (kind == NULL) {
        handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (handle == NULL) {
            return say_not_loaded(scheme, library, url, dlerror(), error);
        }
        kind = dlsym(handle, symbol);
    }
    if (kind == NULL) {
        return idem__error(error, IDEM_ECONFIG, "%s has no symbol %s", library,
                           symbol);
    }
    rc = check_kind(kind, library, error);
    if (rc != 0) {
        return rc;
    }
    if (strcmp(kind->scheme, scheme) != 0) {
        return idem__error(error, IDEM_ECONFIG,
                           "%s provides another kind of store, \"%.20s\"",
                           library, kind->scheme);
    }
    *ret_kind = kind;
    return 0;
}

int idem__kind_find(const char *url, const struct idem_store_kind **ret_kind,
                    const char **ret_place, struct idem_error *ret_error)
{
    char scheme[IDEM_SCHEME_MAX + 1];
    size_t len;

    if (url == NULL) {
        return idem__error(ret_error, IDEM_EINVALID, "no store given");
    }
    len = scheme_len(url);
    if (len == 0 || url[len] != ':') {
        return say_unknown(url, ret_error);
    }
    memcpy(scheme, url, len);
    scheme[len] = '\0';
    *ret_place = url + len + 1;
    *ret_kind = find_built_in(scheme);
    if (*ret_kind == NULL) {
        (void)pthread_mutex_lock(&registered.mutex);
        *ret_kind = find_registered(scheme);
        (void)pthread_mutex_unlock(&registered.mutex);
    }
    return *ret_kind != NULL ? 0 : load(scheme, url, ret_kind, ret_error);
}
