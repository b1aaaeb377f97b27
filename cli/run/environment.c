/* The environment that tells the command about its attempt. */
#include "run/child.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int set(struct environment *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int set(struct environment *e, const char *format, ...)
{
    va_list args;
    int len;

    assert(e->own_len < ENVIRONMENT_OWN_MAX);
    va_start(args, format);
    len = vasprintf(&e->own[e->own_len], format, args);
    va_end(args);
    if (len < 0) {
        return -1;
    }
    e->own_len++;
    return 0;
}

/* No key or scope that came this far has a NUL in it. */
static int set_bytes(struct environment *e, const char *name,
                     struct idem_slice bytes)
{
    const char *text = bytes.len > 0 ? bytes.base : "";

    return set(e, "%s=%.*s", name, (int)bytes.len, text);
}

static int set_task(struct environment *e, const struct idem_request *request,
                    const struct child_task *task)
{
    return set_bytes(e, "IDEM_KEY", request->key) != 0 ||
                   set(e, "IDEM_FENCE=%llu", (unsigned long long)task->fence) !=
                       0 ||
                   set(e, "IDEM_ATTEMPTS=%u", (unsigned)task->attempts) != 0 ||
                   set(e, "IDEM_TAKEOVER=%d", task->takeover) != 0 ||
                   set(e, "IDEM_TOKEN=%s", task->token) != 0
               ? -1
               : 0;
}

static int set_own(struct environment *e, const struct idem_request *request,
                   struct idem_slice window, const struct child_task *task,
                   const char *store_url)
{
    if (set_bytes(e, "IDEM_SCOPE", request->scope) != 0 ||
        set_task(e, request, task) != 0) {
        return -1;
    }
    if (window.len > 0 && set_bytes(e, "IDEM_WINDOW", window) != 0) {
        return -1;
    }
    return store_url == NULL ? 0 : set(e, "IDEM_STORE=%s", store_url);
}

static bool is_any_of(const char *const *list, size_t len, const char *entry)
{
    size_t name_len = strcspn(entry, "=") + 1;
    size_t i;

    for (i = 0; i < len; i++) {
        if (strncmp(list[i], entry, name_len) == 0) {
            return true;
        }
    }
    return false;
}

/* True if @entry is not passed on: we set it, or it is about an attempt of whatever
 * started us. */
static bool is_own(const struct environment *e, const char *entry)
{
    static const char *const about_attempts[] = {
        "IDEM_KEY=",      "IDEM_FENCE=", "IDEM_ATTEMPTS=",
        "IDEM_TAKEOVER=", "IDEM_TOKEN=", "IDEM_WINDOW="};

    return is_any_of((const char *const *)e->own, e->own_len, entry) ||
           is_any_of(about_attempts,
                     sizeof(about_attempts) / sizeof(about_attempts[0]), entry);
}

static size_t count(char *const *list)
{
    size_t n = 0;

    while (list != NULL && list[n] != NULL) {
        n++;
    }
    return n;
}

static int make_list(struct environment *e)
{
    size_t given = count(environ);
    size_t len = 0;
    size_t i;

    e->list = calloc(e->own_len + given + 1, sizeof(*e->list));
    if (e->list == NULL) {
        return -1;
    }
    for (i = 0; i < e->own_len; i++) {
        e->list[len++] = e->own[i];
    }
    for (i = 0; i < given; i++) {
        if (!is_own(e, environ[i])) {
            e->list[len++] = environ[i];
        }
    }
    return 0;
}

int environment_init(struct environment *environment,
                     const struct idem_request *request,
                     struct idem_slice window, const struct child_task *task,
                     const char *store_url)
{
    memset(environment, 0, sizeof(*environment));
    if (set_own(environment, request, window, task, store_url) != 0 ||
        make_list(environment) != 0) {
        environment_finish(environment);
        return -1;
    }
    return 0;
}

void environment_finish(struct environment *environment)
{
    size_t i;

    for (i = 0; i < environment->own_len; i++) {
        free(environment->own[i]);
    }
    free(environment->list);
    memset(environment, 0, sizeof(*environment));
}
