/* The options from the environment. */
#include <idem/lambda.h>

#include "core/error.h"

#include <ctype.h>
#include <stdlib.h>

/* @name's value in ms: "500ms", "30s", "5m", "2h", "7d". Unset: stays. */
static int read_time(const char *name, int64_t *ret_ms,
                     struct idem_error *error)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {
        {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    const char *text = getenv(name);
    char *end;
    long long n;
    size_t i;

    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    if (isdigit((unsigned char)text[0]) && strlen(text) <= 12) {
        n = strtoll(text, &end, 10);
        for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
            if (strcmp(end, units[i].unit) == 0 &&
                n <= IDEM_DURATION_MAX_MS / units[i].ms) {
                *ret_ms = n * units[i].ms;
                return 0;
            }
        }
    }
    return idem__error(error, IDEM_EINVALID,
                       "%s is not a time, such as 500ms, 30s, 5m, 2h or 7d",
                       name);
}

static int read_policy(struct idem_lambda_options *options,
                       struct idem_error *error)
{
    const char *text = getenv("IDEM_LAMBDA_ON_EXPIRED_LEASE");

    if (text == NULL || text[0] == '\0' || strcmp(text, "rerun") == 0) {
        return 0;
    }
    if (strcmp(text, "hold") == 0) {
        options->on_expired_lease = IDEM_HOLD;
        return 0;
    }
    return idem__error(error, IDEM_EINVALID,
                       "IDEM_LAMBDA_ON_EXPIRED_LEASE is rerun or hold");
}

static int read_attempts(struct idem_lambda_options *options,
                         struct idem_error *error)
{
    const char *text = getenv("IDEM_LAMBDA_ATTEMPTS");
    char *end;
    unsigned long n;

    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    n = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || n < 1 || n > 1000) {
        return idem__error(error, IDEM_EINVALID,
                           "IDEM_LAMBDA_ATTEMPTS is a number from 1 to 1000");
    }
    options->attempts_max = (uint32_t)n;
    return 0;
}

static int read_credentials(struct idem_lambda_options *options,
                            struct idem_error *error)
{
    const char *text = getenv("IDEM_LAMBDA_CREDENTIALS");

    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    if (strcmp(text, "pass") != 0) {
        return idem__error(error, IDEM_EINVALID,
                           "IDEM_LAMBDA_CREDENTIALS is pass, or not set");
    }
    options->credentials = true;
    return 0;
}

static int read_visibility(struct idem_lambda_options *options,
                           struct idem_error *error)
{
    const char *text = getenv("IDEM_LAMBDA_VISIBILITY");

    if (text == NULL || text[0] == '\0' || strcmp(text, "change") == 0) {
        return 0;
    }
    if (strcmp(text, "keep") != 0) {
        return idem__error(error, IDEM_EINVALID,
                           "IDEM_LAMBDA_VISIBILITY is change or keep");
    }
    options->keep_visibility = true;
    return 0;
}

static int read_keep_input(struct idem_lambda_options *options,
                           struct idem_error *error)
{
    const char *text = getenv("IDEM_LAMBDA_KEEP_INPUT");

    if (text == NULL || text[0] == '\0' || strcmp(text, "no") == 0) {
        return 0;
    }
    if (strcmp(text, "yes") != 0) {
        return idem__error(error, IDEM_EINVALID,
                           "IDEM_LAMBDA_KEEP_INPUT is yes or no");
    }
    options->keep_input = true;
    return 0;
}

static int read_required(struct idem_lambda_options *options,
                         struct idem_error *error)
{
    const char *text = getenv("IDEM_LAMBDA_REQUIRED");

    if (text == NULL || text[0] == '\0' || strcmp(text, "yes") == 0) {
        return 0;
    }
    if (strcmp(text, "no") != 0) {
        return idem__error(error, IDEM_EINVALID,
                           "IDEM_LAMBDA_REQUIRED is yes or no");
    }
    options->keyless = true;
    return 0;
}

static int read_metrics(struct idem_lambda_options *options,
                        struct idem_error *error)
{
    const char *text = getenv("IDEM_LAMBDA_METRICS");

    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    if (strcmp(text, "emf") != 0) {
        return idem__error(error, IDEM_EINVALID,
                           "IDEM_LAMBDA_METRICS is emf, or not set");
    }
    options->metrics = true;
    return 0;
}

static int read_unrecorded(struct idem_lambda_options *options,
                           struct idem_error *error)
{
    const char *text = getenv("IDEM_LAMBDA_UNRECORDED");

    if (text == NULL || text[0] == '\0' || strcmp(text, "ack") == 0) {
        return 0;
    }
    if (strcmp(text, "fail") != 0) {
        return idem__error(error, IDEM_EINVALID,
                           "IDEM_LAMBDA_UNRECORDED is ack or fail");
    }
    options->fail_unrecorded = true;
    return 0;
}

static void read_texts(struct idem_lambda_options *options)
{
    const struct {
        const char *name;
        const char **to;
    } texts[] = {
        {"IDEM_STORE", &options->store},
        {"_HANDLER", &options->handler},
        {"LAMBDA_TASK_ROOT", &options->directory},
        {"AWS_LAMBDA_FUNCTION_NAME", &options->function},
        {"IDEM_LAMBDA_SCOPE_NAME", &options->function},
        {"IDEM_LAMBDA_SOURCE", &options->source},
        {"IDEM_LAMBDA_KEY", &options->key},
        {"IDEM_LAMBDA_SCOPE", &options->scope},
        {"IDEM_LAMBDA_FINGERPRINT", &options->fingerprint},
        {"IDEM_LAMBDA_EVENT_TIME", &options->event_time},
        {"IDEM_LAMBDA_OUTCOME", &options->outcome},
        {"IDEM_LAMBDA_METHODS", &options->methods},
        {"IDEM_LAMBDA_REPLAY_HEADERS", &options->replay_headers},
    };
    size_t i;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *text = getenv(texts[i].name);

        if (text != NULL && text[0] != '\0') {
            *texts[i].to = text;
        }
    }
}

static int read_times(struct idem_lambda_options *options,
                      struct idem_error *error)
{
    const struct {
        const char *name;
        int64_t *to;
    } times[] = {
        {"IDEM_LAMBDA_RETENTION", &options->retention_ms},
        {"IDEM_LAMBDA_LEASE_MARGIN", &options->lease_margin_ms},
        {"IDEM_LAMBDA_START_MIN", &options->start_min_ms},
        {"IDEM_LAMBDA_STOP_MARGIN", &options->stop_margin_ms},
        {"IDEM_LAMBDA_STORE_TIMEOUT", &options->store_timeout_ms},
        {"IDEM_LAMBDA_WAIT", &options->wait_ms},
    };
    size_t i;
    int rc = 0;

    for (i = 0; rc == 0 && i < sizeof(times) / sizeof(times[0]); i++) {
        rc = read_time(times[i].name, times[i].to, error);
    }
    return rc;
}

int idem_lambda_options_env(struct idem_lambda_options *options,
                            struct idem_error *ret_error)
{
    int rc;

    read_texts(options);
    rc = read_times(options, ret_error);
    if (rc == 0) {
        rc = read_policy(options, ret_error);
    }
    if (rc == 0) {
        rc = read_attempts(options, ret_error);
    }
    if (rc == 0) {
        rc = read_credentials(options, ret_error);
    }
    if (rc == 0) {
        rc = read_unrecorded(options, ret_error);
    }
    if (rc == 0) {
        rc = read_keep_input(options, ret_error);
    }
    if (rc == 0) {
        rc = read_required(options, ret_error);
    }
    if (rc == 0) {
        rc = read_visibility(options, ret_error);
    }
    return rc == 0 ? read_metrics(options, ret_error) : rc;
}
