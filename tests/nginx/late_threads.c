/* Preloaded by journal.py: a thread runs a good while before the function that started
 * it returns, as it may on a busy machine; and a flush takes as long as the file that
 * STALLED names is there, as on a disk that does not answer. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int create_fn(pthread_t *thread, const pthread_attr_t *attr,
                      void *(*run)(void *arg), void *arg);

int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                   void *(*run)(void *arg), void *arg)
{
    create_fn *create;
    int rc;

    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    rc = create(thread, attr, run, arg);
    (void)usleep(300000);
    return rc;
}

static const char *stalled;

/* nginx writes its title over the environment. */
__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("STALLED");

    stalled = path == NULL ? NULL : strdup(path);
}

int fdatasync(int fd)
{
    int (*sync)(int fd);

    while (stalled != NULL && access(stalled, F_OK) == 0) {
        (void)usleep(10000);
    }
    *(void **)&sync = dlsym(RTLD_NEXT, "fdatasync");
    return sync(fd);
}
