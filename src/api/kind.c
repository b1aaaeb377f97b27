/* Finds the kind of a store: in libidem, in this program, or in a library that it loads. */

#include "base/host.h"
#include "contract/kind.h"
#include "core/error.h"

#include <idem/memory.h>
#include <idem/sqlite.h>

#include <dlfcn.h>
#include <stdio.h>
#include <sys/auxv.h>

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
        .open = idem_sqlite_open,
        .create = idem_sqlite_create,
        .check = idem_sqlite_check,
    },
    {
        .abi = IDEM_STORE_ABI,
        .size = sizeof(struct idem_store_kind),
        .scheme = "memory",
        .open = open_memory,
    },
};

/* The kinds that are in libraries of their own. A kind that was found stays valid: it is
 * never removed, and its library stays loaded. */
struct other {
    const char *scheme;
    const char *library;
    const char *package;                /* That has the library. */
    const struct idem_store_kind *kind; /* Atomic. NULL: not found yet. */
};

static struct other others[] = {
    {"dynamodb", "libidem-aws.so.0", "libidem-aws0", NULL},
    {"postgres", "libidem-postgres.so.0", "libidem-postgres0", NULL},
    {"postgresql", "libidem-postgres.so.0", "libidem-postgres0", NULL},
};

static bool is_scheme(const char *name, struct idem_slice scheme)
{
    return strlen(name) == scheme.len &&
           memcmp(name, scheme.base, scheme.len) == 0;
}

static const struct idem_store_kind *find_built_in(struct idem_slice scheme)
{
    size_t i;

    for (i = 0; i < sizeof(built_in) / sizeof(built_in[0]); i++) {
        if (is_scheme(built_in[i].scheme, scheme)) {
            return &built_in[i];
        }
    }
    return NULL;
}

static struct other *find_other(struct idem_slice scheme)
{
    size_t i;

    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (is_scheme(others[i].scheme, scheme)) {
            return &others[i];
        }
    }
    return NULL;
}

/* Compares abi and size before anything reads the rest of @kind. */
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
    int rc = check_kind(kind, "the kind of store to register", ret_error);
    struct other *other;

    if (rc != 0) {
        return rc;
    }
    other = find_other(idem_str(kind->scheme));
    if (other == NULL) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "libidem has no kind of store \"%s:\" to register",
                           kind->scheme);
    }
    __atomic_store_n(&other->kind, kind, __ATOMIC_RELEASE);
    return 0;
}

/* ---- Libraries --------------------------------------------------------- */

/* Finds the kind in this program, or in its library, which stays loaded. */
static int load(struct other *other, struct idem_error *error)
{
    char symbol[32];
    const struct idem_store_kind *kind;
    void *library;
    int rc;

    if (!idem__has_loader()) {
        return idem__error(error, IDEM_ECONFIG,
                           "this program is linked statically and has no store "
                           "\"%s:\": take one that loads libraries, with the "
                           "package %s",
                           other->scheme, other->package);
    }
    (void)snprintf(symbol, sizeof(symbol), "idem_%s_kind", other->scheme);
    kind = dlsym(RTLD_DEFAULT, symbol);
    if (kind == NULL && getauxval(AT_SECURE) != 0) {
        return idem__error(error, IDEM_ECONFIG,
                           "a store \"%s:\" needs %s, and a set-user-ID or "
                           "set-group-ID program loads no library: call "
                           "idem_kind_register() in it",
                           other->scheme, other->library);
    }
    if (kind == NULL) {
        library = dlopen(other->library, RTLD_NOW | RTLD_LOCAL);
        kind = library == NULL ? NULL : dlsym(library, symbol);
    }
    if (kind == NULL) {
        const char *why = dlerror();

        return idem__error(error, IDEM_ECONFIG,
                           "a store \"%s:\" needs %s, which cannot be loaded "
                           "(%.200s): apt install %s",
                           other->scheme, other->library,
                           why == NULL ? "the loader gave no reason" : why,
                           other->package);
    }
    rc = check_kind(kind, other->library, error);
    if (rc == 0) {
        __atomic_store_n(&other->kind, kind, __ATOMIC_RELEASE);
    }
    return rc;
}

static int say_unknown(const char *url, struct idem_error *error)
{
    char shown[101];

    return idem__error(error, IDEM_EINVALID,
                       "unknown kind of store \"%s\": use sqlite:PATH, "
                       "dynamodb://TABLE, postgres://HOST/DATABASE or memory:",
                       idem_url_hide(url, shown, sizeof(shown)));
}

int idem__kind_find(const char *url, const struct idem_store_kind **ret_kind,
                    const char **ret_place, struct idem_error *ret_error)
{
    struct idem_slice scheme;
    struct other *other;
    int rc = 0;

    if (url == NULL) {
        return idem__error(ret_error, IDEM_EINVALID, "no store given");
    }
    scheme = idem_bytes(url, strcspn(url, ":"));
    if (url[scheme.len] == '\0') {
        return say_unknown(url, ret_error);
    }
    *ret_place = url + scheme.len + 1;
    *ret_kind = find_built_in(scheme);
    if (*ret_kind != NULL) {
        return 0;
    }
    other = find_other(scheme);
    if (other == NULL) {
        return say_unknown(url, ret_error);
    }
    if (__atomic_load_n(&other->kind, __ATOMIC_ACQUIRE) == NULL) {
        rc = load(other, ret_error);
    }
    *ret_kind = __atomic_load_n(&other->kind, __ATOMIC_ACQUIRE);
    return rc;
}
