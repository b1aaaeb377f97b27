/* libmicrohttpd, loaded when it is needed. */
#include "text/error.h"
#include "ui/http_request.h"

#include <dlfcn.h>
#include <stdbool.h>

static struct ui_mhd functions;

static bool find(void *library, const char *name, void *slot)
{
    void *function = dlsym(library, name);

    memcpy(slot, &function, sizeof(function));
    return function != NULL;
}

static bool find_all(void *library)
{
#define X(name)                                                                \
    if (!find(library, "MHD_" #name, &functions.name)) {                       \
        return false;                                                          \
    }
    UI_MHD_MAP(X)
#undef X
    return true;
}

const struct ui_mhd *ui_mhd(void)
{
    void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        cli_say("libmicrohttpd is needed for this and is not installed: apt "
                "install libmicrohttpd12");
        return NULL;
    }
    if (!find_all(library)) {
        cli_say("libmicrohttpd cannot be used: it lacks a function");
        return NULL;
    }
    return &functions;
}
