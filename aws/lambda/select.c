/* The selectors of the options. */
#include "aws/lambda/lambda.h"

#include "core/error.h"

#include <idem/key.h>

static const char *const names[] = {"IDEM_LAMBDA_KEY", "IDEM_LAMBDA_SCOPE",
                                    "IDEM_LAMBDA_FINGERPRINT"};

/* Puts the name of the variable before the message of a failure. */
static int refuse(enum idem__lambda_what what, const struct idem_error *why,
                  struct idem_error *error)
{
    return idem__error(error, why->code, "%s: %s", names[what], why->text);
}

int idem__lambda_selects_init(struct idem_lambda *lambda,
                              struct idem_error *ret_error)
{
    const struct idem_lambda_options *o = lambda->options;
    const struct {
        const char *text;
        const char *none; /* A word that means: no selector. */
    } given[] = {
        [IDEM__LAMBDA_KEY] = {o->key, ""},
        [IDEM__LAMBDA_SCOPE] = {o->scope, "global"},
        [IDEM__LAMBDA_FINGERPRINT] = {o->fingerprint, "none"},
    };
    struct idem_error why = {0};
    int i;

    for (i = 0; i < IDEM__LAMBDA_WHATS_LEN; i++) {
        const char *text = given[i].text;

        if (text == NULL || text[0] == '\0' ||
            strcmp(text, given[i].none) == 0) {
            continue;
        }
        why.code = idem_selector_create(text, &lambda->selects[i], &why);
        if (why.code != 0) {
            return refuse((enum idem__lambda_what)i, &why, ret_error);
        }
    }
    return 0;
}

void idem__lambda_selects_finish(struct idem_lambda *lambda)
{
    size_t i;

    for (i = 0; i < IDEM__LAMBDA_WHATS_LEN; i++) {
        idem_selector_destroy(lambda->selects[i]);
    }
}

bool idem__lambda_selects_has(const struct idem_lambda *lambda,
                              enum idem__lambda_what what)
{
    return lambda->selects[what] != NULL;
}

int idem__lambda_select(struct idem_lambda *lambda, enum idem__lambda_what what,
                        struct idem_slice json, struct idem__buffer *to,
                        struct idem_error *ret_error)
{
    struct idem_selector *selector = lambda->selects[what];
    struct idem_error why = {0};
    struct idem_key_text text;
    struct idem_slice values;

    why.code = idem_selector_run(selector, json, IDEM_SELECTOR_HTTP, &why);
    if (why.code == 0 && what == IDEM__LAMBDA_FINGERPRINT) {
        why.code = idem_selector_values(selector, &values, &why);
    } else if (why.code == 0) {
        /* A caller follows the rules of a key: one value or a list, and never null. */
        why.code = idem_key_of(selector, &text, &why);
        values = idem_bytes(text.text, text.len);
    }
    if (why.code == 0) {
        idem__buffer_add(to, values.base, values.len);
    }
    if (why.code == IDEM_ENOTFOUND && what != IDEM__LAMBDA_KEY) {
        why.code = IDEM_EINVALID;
    }
    return why.code == 0 ? 0 : refuse(what, &why, ret_error);
}
