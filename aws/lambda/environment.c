/* The environment of a handler that is a program. */
#include "aws/lambda/lambda.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OWN_MAX 16

/* Variables that a program does not need, and that could do harm in it. */
static const char *const kept_back[] = {
    "AWS_LAMBDA_RUNTIME_API=",
    "IDEM_EVENT_MS=", /* Ours would be that of another event. */
    "IDEM_METER=emf", /* A command of the handler would take "emf" for a file. */
    NULL,
};
static const char *const credentials[] = {
    "AWS_ACCESS_KEY_ID=",
    "AWS_SECRET_ACCESS_KEY=",
    "AWS_SESSION_TOKEN=",
    "AWS_SECURITY_TOKEN=",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN=",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI=",
    NULL,
};

struct list {
    char **env;
    size_t len;
    bool failed;
};

static void add(struct list *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(struct list *list, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (list->failed || vasprintf(&list->env[list->len], format, args) < 0) {
        list->failed = true;
        list->env[list->len] = NULL;
    } else {
        list->len++;
    }
    va_end(args);
}

/* Adds a key or scope. Leaves out one with a NUL in it, which would be cut there. */
static void add_bytes(struct list *list, const char *name,
                      struct idem_slice bytes)
{
    if (bytes.len == 0 || memchr(bytes.base, '\0', bytes.len) == NULL) {
        add(list, "%s=%.*s", name, (int)bytes.len,
            bytes.len == 0 ? "" : (const char *)bytes.base);
    }
}

static void add_attempt(struct list *list, const struct idem_lambda *lambda)
{
    const struct idem_attempt *attempt = lambda->work.call.attempt;
    char token[IDEM_TOKEN_MAX];

    if (attempt == NULL) {
        return;
    }
    add_bytes(list, "IDEM_KEY", attempt->record->key);
    add_bytes(list, "IDEM_SCOPE", attempt->record->scope);
    add(list, "IDEM_FENCE=%llu", (unsigned long long)attempt->fence);
    add(list, "IDEM_ATTEMPTS=%u", (unsigned)attempt->attempts);
    add(list, "IDEM_TAKEOVER=%d", attempt->takeover);
    if (idem_attempt_token(attempt, token) == 0) {
        add(list, "IDEM_TOKEN=%s", token);
        explicit_bzero(token, sizeof(token));
    }
}

static void add_call(struct list *list, const struct idem_lambda_call *call)
{
    add(list, "AWS_LAMBDA_REQUEST_ID=%s", call->request_id);
    add(list, "AWS_LAMBDA_DEADLINE_MS=%lld", (long long)call->deadline_ms);
    add(list, "AWS_LAMBDA_FUNCTION_ARN=%s", call->function_arn);
    add(list, "_X_AMZN_TRACE_ID=%s", call->trace_id);
    if (call->event_ms != 0) {
        add(list, "IDEM_EVENT_MS=%lld", (long long)call->event_ms);
    }
}

static bool starts_with_one_of(const char *entry, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (strncmp(entry, *names, strlen(*names)) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_set(const struct list *list, const char *entry)
{
    size_t len = strcspn(entry, "=") + 1;
    size_t i;

    for (i = 0; i < list->len; i++) {
        if (strncmp(list->env[i], entry, len) == 0) {
            return true;
        }
    }
    return false;
}

static void add_ours(struct list *list, bool with_credentials)
{
    char **entry;

    for (entry = environ; entry != NULL && *entry != NULL; entry++) {
        if (starts_with_one_of(*entry, kept_back) || is_set(list, *entry) ||
            (!with_credentials && starts_with_one_of(*entry, credentials))) {
            continue;
        }
        add(list, "%s", *entry);
    }
}

char **idem__lambda_environment(const struct idem_lambda *lambda)
{
    struct list list = {0};
    size_t given = 0;

    while (environ != NULL && environ[given] != NULL) {
        given++;
    }
    list.env = calloc(given + OWN_MAX + 1, sizeof(*list.env));
    if (list.env == NULL) {
        return NULL;
    }
    add_attempt(&list, lambda);
    add_call(&list, &lambda->work.call);
    add_ours(&list, lambda->options->credentials);
    if (list.failed) {
        idem__lambda_environment_free(list.env);
        return NULL;
    }
    return list.env;
}

void idem__lambda_environment_free(char **env)
{
    size_t i;

    for (i = 0; env[i] != NULL; i++) {
        explicit_bzero(env[i], strlen(env[i]));
        free(env[i]);
    }
    free(env);
}
