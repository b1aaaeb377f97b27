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

/* The word @off, or none, sets @to false; the word @on sets it true. */
static int read_word(const char *name, const char *off, const char *on,
                     bool *to, struct idem_error *error)
{
    const char *text = getenv(name);

    if (text == NULL || text[0] == '\0' || strcmp(text, off) == 0) {
        return 0;
    }
    if (strcmp(text, on) == 0) {
        *to = true;
        return 0;
    }
    return off[0] == '\0' ? idem__error(error, IDEM_EINVALID,
                                        "%s is %s, or not set", name, on)
                          : idem__error(error, IDEM_EINVALID, "%s is %s or %s",
                                        name, off, on);
}

static int read_words(struct idem_lambda_options *options,
                      struct idem_error *error)
{
    bool hold = false;
    const struct {
        const char *name;
        const char *off;
        const char *on;
        bool *to;
    } words[] = {
        {"IDEM_LAMBDA_ON_EXPIRED_LEASE", "rerun", "hold", &hold},
        {"IDEM_LAMBDA_CREDENTIALS", "", "pass", &options->credentials},
        {"IDEM_LAMBDA_UNRECORDED", "ack", "fail", &options->fail_unrecorded},
        {"IDEM_LAMBDA_KEEP_INPUT", "no", "yes", &options->keep_input},
        {"IDEM_LAMBDA_REQUIRED", "yes", "no", &options->keyless},
        {"IDEM_LAMBDA_VISIBILITY", "change", "keep", &options->keep_visibility},
        {"IDEM_LAMBDA_METRICS", "", "emf", &options->metrics},
    };
    size_t i;
    int rc = 0;

    for (i = 0; rc == 0 && i < sizeof(words) / sizeof(words[0]); i++) {
        rc = read_word(words[i].name, words[i].off, words[i].on, words[i].to,
                       error);
    }
    if (hold) {
        options->on_expired_lease = IDEM_HOLD;
    }
    return rc;
}

static int read_count(const char *name, uint32_t *to, struct idem_error *error)
{
    const char *text = getenv(name);
    char *end;
    unsigned long n;

    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    n = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || n < 1 || n > 1000) {
        return idem__error(error, IDEM_EINVALID,
                           "%s is a number from 1 to 1000", name);
    }
    *to = (uint32_t)n;
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
        {"IDEM_LAMBDA_RETRY_AFTER", &options->retry_after_ms},
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
        rc = read_words(options, ret_error);
    }
    if (rc == 0) {
        rc = read_count("IDEM_LAMBDA_ATTEMPTS", &options->attempts_max,
                        ret_error);
    }
    return rc == 0 ? read_count("IDEM_LAMBDA_MAX_FAILURES",
                                &options->failures_max, ret_error)
                   : rc;
}
