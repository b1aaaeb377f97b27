/* The selectors of the options. */
#include "aws/lambda/lambda.h"

#include "base/heap.h"
#include "core/error.h"

#include <idem/key.h>

struct idem__lambda_selects {
    struct idem_selector *of[IDEM__LAMBDA_WHATS_LEN];
};

static const char *const names[] = {"IDEM_LAMBDA_KEY", "IDEM_LAMBDA_SCOPE",
                                    "IDEM_LAMBDA_FINGERPRINT",
                                    "IDEM_LAMBDA_EVENT_TIME"};

/* The sentence of a failure begins with the name of the selector. */
static int refuse(enum idem__lambda_what what, const struct idem_error *why,
                  struct idem_error *error)
{
    return idem__error(error, why->code, "%s: %s", names[what], why->text);
}

static int compile(struct idem__lambda_selects *selects,
                   enum idem__lambda_what what, const char *text,
                   struct idem_error *error)
{
    struct idem_error why = {0};

    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    why.code = idem_selector_create(text, &selects->of[what], &why);
    return why.code == 0 ? 0 : refuse(what, &why, error);
}

int idem__lambda_selects_init(struct idem_lambda *lambda,
                              struct idem_error *ret_error)
{
    const struct idem_lambda_options *o = lambda->options;
    bool none = o->fingerprint != NULL && strcmp(o->fingerprint, "none") == 0;
    bool global = o->scope != NULL && strcmp(o->scope, "global") == 0;
    struct idem__lambda_selects *selects = idem__zalloc(sizeof(*selects));
    int rc;

    if (selects == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    lambda->selects = selects;
    rc = compile(selects, IDEM__LAMBDA_KEY, o->key, ret_error);
    if (rc == 0) {
        rc = compile(selects, IDEM__LAMBDA_SCOPE, global ? NULL : o->scope,
                     ret_error);
    }
    if (rc == 0) {
        rc = compile(selects, IDEM__LAMBDA_FINGERPRINT,
                     none ? NULL : o->fingerprint, ret_error);
    }
    if (rc == 0) {
        rc = compile(selects, IDEM__LAMBDA_TIME, o->event_time, ret_error);
    }
    return rc;
}

void idem__lambda_selects_finish(struct idem_lambda *lambda)
{
    size_t i;

    for (i = 0; lambda->selects != NULL && i < IDEM__LAMBDA_WHATS_LEN; i++) {
        idem_selector_destroy(lambda->selects->of[i]);
    }
    idem__free(lambda->selects);
    lambda->selects = NULL;
}

bool idem__lambda_selects_has(const struct idem_lambda *lambda,
                              enum idem__lambda_what what)
{
    return lambda->selects->of[what] != NULL;
}

/* As of the key of an operation: of a caller and a time, too, there is one, and it is
 * never null. */
static int add_text(struct idem_selector *selector, struct idem__buffer *to,
                    struct idem_error *error)
{
    struct idem_key_text text;
    int rc = idem_key_of(selector, &text, error);

    if (rc == 0) {
        idem__buffer_add(to, text.text, text.len);
    }
    return rc;
}

static int add_values(struct idem_selector *selector, struct idem__buffer *to,
                      struct idem_error *error)
{
    struct idem_slice values;
    int rc = idem_selector_values(selector, &values, error);

    if (rc == 0) {
        idem__buffer_add(to, values.base, values.len);
    }
    return rc;
}

int idem__lambda_select(struct idem_lambda *lambda, enum idem__lambda_what what,
                        struct idem_slice json, struct idem__buffer *to,
                        struct idem_error *ret_error)
{
    struct idem_selector *selector = lambda->selects->of[what];
    struct idem_error why = {0};

    why.code = idem_selector_run(selector, json, IDEM_SELECTOR_HTTP, &why);
    if (why.code == 0) {
        why.code = what == IDEM__LAMBDA_FINGERPRINT
                       ? add_values(selector, to, &why)
                       : add_text(selector, to, &why);
    }
    if (why.code == IDEM_ENOTFOUND && what != IDEM__LAMBDA_KEY) {
        why.code = IDEM_EINVALID;
    }
    return why.code == 0 ? 0 : refuse(what, &why, ret_error);
}
