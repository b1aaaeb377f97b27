/* Preloaded by journal.py: a thread runs a good while before the function that started
 * it returns, as it may on a busy machine. */
#include <dlfcn.h>
#include <pthread.h>
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
