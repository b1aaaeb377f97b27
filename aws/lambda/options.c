/* Reads the options from the environment. */
#include <idem/lambda.h>

#include "core/error.h"

#include <idem/setting.h>

#include <stdlib.h>
#include <string.h>

/* Two words; the second one sets a flag. */
#define WORDS(off, on)                                                         \
    IDEM_SETTING(IDEM_SETTING_WORD,                                            \
                 .words = (const char *const[]){off, on, NULL})

/* A variable, its type, and one of four places for its value. */
struct variable {
    const char *name;
    const struct idem_setting *as;
    int64_t *ms;
    uint32_t *count;
    bool *flag;
    enum idem_on_expired_lease *policy;
};

static int read_one(const struct variable *v, struct idem_error *error)
{
    const char *text = getenv(v->name);
    int64_t value;
    int rc;

    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    rc = idem_setting_read(v->as, v->name, text, &value, error);
    if (rc != 0) {
        return rc;
    }
    if (v->ms != NULL) {
        *v->ms = value;
    } else if (v->count != NULL) {
        *v->count = (uint32_t)value;
    } else if (v->flag != NULL) {
        *v->flag = value == 1;
    } else {
        *v->policy = (enum idem_on_expired_lease)value;
    }
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
        {"IDEM_SCOPE", &options->function},
        {"IDEM_LAMBDA_SOURCE", &options->source},
        {"IDEM_LAMBDA_KEY", &options->key},
        {"IDEM_LAMBDA_SCOPE", &options->scope},
        {"IDEM_LAMBDA_FINGERPRINT", &options->fingerprint},
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

int idem_lambda_options_env(struct idem_lambda_options *options,
                            struct idem_error *ret_error)
{
    struct idem_lambda_options *o = options;
    const struct variable variables[] = {
        {"IDEM_LAMBDA_RETENTION", IDEM_SETTING_RETENTION,
         .ms = &o->retention_ms},
        {"IDEM_LAMBDA_RETRY_AFTER", IDEM_SETTING_RETRY_AFTER,
         .ms = &o->retry_after_ms},
        {"IDEM_LAMBDA_WAIT", IDEM_SETTING_WAIT, .ms = &o->wait_ms},
        {"IDEM_LAMBDA_START_MIN", IDEM_SETTING(IDEM_SETTING_TIME),
         .ms = &o->start_min_ms},
        {"IDEM_STORE_TIMEOUT", IDEM_SETTING_STORE_TIMEOUT,
         .ms = &o->store_timeout_ms},
        {"IDEM_LAMBDA_MAX_ATTEMPTS", IDEM_SETTING_MAX_ATTEMPTS,
         .count = &o->attempts_max},
        {"IDEM_LAMBDA_MAX_FAILURES", IDEM_SETTING_MAX_FAILURES,
         .count = &o->failures_max},
        {"IDEM_LAMBDA_ON_EXPIRED_LEASE", IDEM_SETTING_POLICY,
         .policy = &o->on_expired_lease},
        {"IDEM_LAMBDA_CREDENTIALS", WORDS("withhold", "pass"),
         .flag = &o->credentials},
        {"IDEM_LAMBDA_KEEP_INPUT", WORDS("no", "yes"), .flag = &o->keep_input},
        {"IDEM_LAMBDA_REQUIRED", WORDS("yes", "no"), .flag = &o->keyless},
    };
    const char *meter;
    size_t i;
    int rc = 0;

    read_texts(options);
    meter = getenv("IDEM_METER");
    o->metrics = meter != NULL && strcmp(meter, "emf") == 0;
    for (i = 0; rc == 0 && i < sizeof(variables) / sizeof(variables[0]); i++) {
        rc = read_one(&variables[i], ret_error);
    }
    return rc;
}
