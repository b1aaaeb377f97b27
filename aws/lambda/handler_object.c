/* A handler that is a function in a shared object. */
#include "aws/lambda/handler.h"

#include "base/heap.h"
#include "base/loader.h"
#include "core/error.h"

#include <dlfcn.h>

struct idem__lambda_object {
    void *library;
};

int idem__lambda_object_init(struct idem_lambda *lambda, const char *path,
                             const char *function, struct idem_error *ret_error)
{
    void *library;
    void *found;

    if (!idem__has_loader()) {
        return idem__error(ret_error, IDEM_ECONFIG,
                           "the handler %.100s cannot be loaded: this program "
                           "is linked statically; make the handler an "
                           "executable, or take the idem of a package",
                           path);
    }
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return idem__error(ret_error, IDEM_ECONFIG,
                           "the handler cannot be loaded: %s", dlerror());
    }
    found = dlsym(library, function);
    if (found == NULL) {
        (void)dlclose(library);
        return idem__error(ret_error, IDEM_ECONFIG, "%s has no function \"%s\"",
                           path, function);
    }
    lambda->object = idem__zalloc(sizeof(*lambda->object));
    if (lambda->object == NULL) {
        (void)dlclose(library);
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    lambda->object->library = library;
    memcpy(&lambda->run, &found, sizeof(found));
    return 0;
}

void idem__lambda_object_finish(struct idem_lambda *lambda)
{
    if (lambda->object != NULL) {
        (void)dlclose(lambda->object->library);
        idem__free(lambda->object);
        lambda->object = NULL;
    }
}
