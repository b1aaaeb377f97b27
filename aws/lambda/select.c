/* The jq programs of the options. */
#include "aws/lambda/select.h"

#include "base/heap.h"
#include "core/error.h"

#include <idem/key.h>

struct idem__lambda_selects {
    struct idem_select *programs[IDEM__LAMBDA_WHATS_LEN];
};

static const char *const names[] = {"IDEM_LAMBDA_KEY", "IDEM_LAMBDA_SCOPE",
                                    "IDEM_LAMBDA_FINGERPRINT",
                                    "IDEM_LAMBDA_EVENT_TIME"};

static int compile(struct idem__lambda_selects *selects,
                   enum idem__lambda_what what, const char *program,
                   struct idem_error *error)
{
    struct idem_select_options options = IDEM_SELECT_OPTIONS_INIT;
    struct idem_error why = {0};
    int rc;

    if (program == NULL || program[0] == '\0') {
        return 0;
    }
    options.several = what == IDEM__LAMBDA_FINGERPRINT;
    options.allow_null = what == IDEM__LAMBDA_KEY; /* select() looks itself. */
    rc = idem_select_create(program, &options, &selects->programs[what], &why);
    return rc == 0 ? 0
                   : idem__error(error, rc, "%s: %s", names[what], why.text);
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
        idem_select_destroy(lambda->selects->programs[i]);
    }
    idem__free(lambda->selects);
    lambda->selects = NULL;
}

bool idem__lambda_selects_has(const struct idem_lambda *lambda,
                              enum idem__lambda_what what)
{
    return lambda->selects->programs[what] != NULL;
}

/* Null, and what has nothing but nulls in it: one key for all that lack theirs. */
static bool says_nothing(struct idem_slice output)
{
    struct idem__tree tree = {.halves = false};
    bool nothing = idem__tree_read(&tree, output, NULL) == 0;
    uint32_t i;

    for (i = 0; nothing && i < idem__tree_len(&tree); i++) {
        enum idem__tree_kind kind = idem__tree_at(&tree, i)->kind;

        nothing = kind == IDEM__TREE_NULL || kind == IDEM__TREE_ARRAY ||
                  kind == IDEM__TREE_OBJECT;
    }
    idem__tree_free(&tree);
    return nothing;
}

int idem__lambda_select(struct idem_lambda *lambda, enum idem__lambda_what what,
                        struct idem_slice json, struct idem__buffer *to,
                        struct idem_error *ret_error)
{
    struct idem_select *program = lambda->selects->programs[what];
    struct idem_slice output;
    int rc = idem_select_run(program, json, &output, ret_error);

    if (rc == IDEM_EINVALID && idem_select_cut_off(program)) {
        return IDEM_EUNAVAILABLE; /* It says nothing of the event. */
    }
    if (rc == 0 && what == IDEM__LAMBDA_KEY && says_nothing(output)) {
        return idem__error(ret_error, IDEM_ENOTFOUND,
                           "IDEM_LAMBDA_KEY selects %.*s: the key is not there",
                           output.len > 60 ? 60 : (int)output.len,
                           (const char *)output.base);
    }
    if (rc == 0) {
        output = idem_select_text(program, output);
        idem__buffer_add(to, output.base, output.len);
    }
    return rc;
}
