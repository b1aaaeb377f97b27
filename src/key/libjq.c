/* Loading libjq. */
#include "key/libjq.h"

#include "core/error.h"

#include <dlfcn.h>
#include <pthread.h>

static struct {
    pthread_once_t once;
    struct idem__libjq functions;
    struct idem_error error; /* code 0: loaded. */
} libjq = {.once = PTHREAD_ONCE_INIT};

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
    if (!find(library, #name, &libjq.functions.name)) {                        \
        return false;                                                          \
    }
    IDEM__JQ_MAP(IDEM__X)
#undef IDEM__X
    return true;
}

/* All of it is bound now: a forked child must not have to. */
static void load(void)
{
    void *library = dlopen("libjq.so.1", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        (void)idem__error(&libjq.error, IDEM_ECONFIG,
                          "libjq is needed to select with a jq program and is "
                          "not installed: apt install libjq1");
        return;
    }
    if (!find_all(library)) {
        (void)idem__error(&libjq.error, IDEM_ECONFIG,
                          "libjq cannot be used: it lacks a function");
        (void)dlclose(library);
    }
}

int idem__libjq_get(const struct idem__libjq **ret_jq,
                    struct idem_error *ret_error)
{
    (void)pthread_once(&libjq.once, load);
    if (libjq.error.code != 0) {
        return idem__error(ret_error, libjq.error.code, "%s", libjq.error.text);
    }
    *ret_jq = &libjq.functions;
    return 0;
}
