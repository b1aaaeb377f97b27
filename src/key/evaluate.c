/* Runs a compiled jq program over a JSON text. */
#include "key/evaluate.h"

#include "core/error.h"
#include "key/exact.h"

enum {
    KEEP = 64 * 1024,
    ERROR_MAX = 160,
};

static int refuse(struct idem_error *error, const char *what)
{
    return idem__error(error, IDEM_EINVALID, "%s", what);
}

int idem__evaluate_read(struct idem__evaluation *e, struct idem_slice json,
                        struct idem_error *ret_error)
{
    size_t max = e->options->input_max;
    int rc;

    if (json.len > max) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "the JSON text has %zu bytes, and at most %zu are "
                           "taken",
                           json.len, max);
    }
    rc = idem__tree_read(&e->input, json, ret_error);
    if (rc == 0 && e->input.halves) {
        return refuse(ret_error, "the JSON text has half a surrogate pair, "
                                 "which jq does not keep");
    }
    return rc;
}

/* ---- One run ---- */

/* The program threw a string, or any other value. */
static int explain_error(const struct idem__libjq *jq, jv thrown,
                         struct idem_error *error)
{
    int len;

    if (jq->jv_get_kind(thrown) != JV_KIND_STRING) {
        thrown = jq->jv_dump_string(thrown, 0);
    }
    len = jq->jv_string_length_bytes(jq->jv_copy(thrown));
    (void)idem__error(error, IDEM_EINVALID, "the program fails: %.*s",
                      len > ERROR_MAX ? ERROR_MAX : len,
                      jq->jv_string_value(thrown));
    jq->jv_free(thrown);
    return IDEM_EINVALID;
}

static int take_value(struct idem__evaluation *e, jv value,
                      struct idem__buffer *to, struct idem_error *error)
{
    const struct idem__libjq *jq = e->jq;
    jv text = jq->jv_dump_string(jq->jv_copy(value), 0);
    size_t len = (size_t)jq->jv_string_length_bytes(jq->jv_copy(text));
    int rc = 0;

    if (len > e->options->output_max) {
        rc = idem__error(error, IDEM_EINVALID,
                         "what the program selects has more than %zu bytes",
                         e->options->output_max);
    } else {
        idem__buffer_reset(to, KEEP);
        idem__buffer_add(to, jq->jv_string_value(text), len);
        rc = to->failed ? idem__error_plain(error, IDEM_ENOMEM) : 0;
    }
    jq->jv_free(text);
    return rc;
}

/* The one value that comes of @text, as JSON in @to. */
static int run_text(struct idem__evaluation *e, struct idem_slice text,
                    struct idem__buffer *to, struct idem_error *error)
{
    const struct idem__libjq *jq = e->jq;
    jv value = jq->jv_parse_sized(text.base, (int)text.len);
    jv first, more;
    int rc;

    if (jq->jv_get_kind(value) == JV_KIND_INVALID) {
        return explain_error(jq, jq->jv_invalid_get_msg(value), error);
    }
    jq->jq_start(e->state, value, 0);
    first = jq->jq_next(e->state);
    more = jq->jv_get_kind(first) == JV_KIND_INVALID ? jq->jv_copy(first)
                                                     : jq->jq_next(e->state);
    if (jq->jq_halted(e->state)) {
        rc = refuse(error, "the program fails: it halts");
    } else if (jq->jv_get_kind(more) != JV_KIND_INVALID) {
        rc = refuse(error, "the program gives more than one value: put it "
                           "in [ ] if they belong together");
    } else if (jq->jv_invalid_has_msg(jq->jv_copy(more))) {
        rc =
            explain_error(jq, jq->jv_invalid_get_msg(jq->jv_copy(more)), error);
    } else if (jq->jv_get_kind(first) == JV_KIND_INVALID) {
        rc = refuse(error, "the program selects nothing");
    } else {
        rc = take_value(e, first, to, error);
    }
    jq->jv_free(first);
    jq->jv_free(more);
    return rc;
}

/* The value of the first run, with the digits of its numbers as they were. */
static int merge(struct idem__evaluation *e, bool has_marks,
                 struct idem_error *error)
{
    const struct idem__tree *marked = NULL;
    struct idem_slice plain = idem__buffer_slice(&e->plain_text);
    struct idem_error ignored;
    int rc = idem__tree_read(&e->plain, plain, error);

    /* Nothing but nulls: what was to be selected is not there. */
    if (rc == 0 && !e->options->allow_null &&
        idem__tree_is_null(&e->plain, 0)) {
        return idem__error(error, IDEM_EINVALID,
                           "the program selects %.*s: what it names is not "
                           "there",
                           plain.len > 60 ? 60 : (int)plain.len,
                           (const char *)plain.base);
    }
    if (rc == 0 && has_marks) {
        rc = run_text(e, idem__buffer_slice(&e->marks), &e->marked_text,
                      &ignored);
        if (rc == 0) {
            rc = idem__tree_read(&e->marked,
                                 idem__buffer_slice(&e->marked_text), error);
            marked = &e->marked;
        } else if (rc == IDEM_EINVALID) {
            rc = 0; /* The program does not like marks: merging says so. */
        }
    }
    if (rc != 0) {
        return rc;
    }
    idem__buffer_reset(&e->output, KEEP);
    if (has_marks) {
        return idem__exact_merge(&e->input, &e->plain, marked, &e->output,
                                 error);
    }
    idem__buffer_add(&e->output, plain.base, plain.len);
    return e->output.failed ? idem__error_plain(error, IDEM_ENOMEM) : 0;
}

int idem__evaluate_run(struct idem__evaluation *e,
                       struct idem_slice *ret_output,
                       struct idem_error *ret_error)
{
    bool has_marks;
    int rc;

    idem__buffer_reset(&e->marks, KEEP);
    has_marks = idem__exact_mark(&e->input, &e->marks);
    if (e->marks.failed) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    rc = run_text(e, e->input.json, &e->plain_text, ret_error);
    if (rc == 0) {
        rc = merge(e, has_marks, ret_error);
    }
    if (rc == 0) {
        *ret_output = idem__buffer_slice(&e->output);
    }
    return rc;
}

void idem__evaluation_free(struct idem__evaluation *e)
{
    idem__tree_free(&e->input);
    idem__tree_free(&e->plain);
    idem__tree_free(&e->marked);
    idem__buffer_free(&e->marks);
    idem__buffer_free(&e->plain_text);
    idem__buffer_free(&e->marked_text);
    idem__buffer_free(&e->output);
}
