/* A jq program that is compiled once and run over many texts. */
#include <idem/key.h>

#include "base/heap.h"
#include "base/span.h"
#include "core/error.h"
#include "key/child.h"
#include "key/exact.h"

#include <limits.h>

enum {
    PROGRAM_MAX = 64 * 1024,
    KEEP = 64 * 1024,
};

struct idem_select {
    const struct idem__libjq *jq;
    jq_state *state;
    struct idem_select_options options;
    char complaint[200]; /* Of the compiler: its first. */

    struct idem__tree input;
    struct idem__tree plain;
    struct idem__tree marked;
    struct idem__buffer marks; /* The input with marks for numbers. */
    struct idem__buffer bytes; /* What the child said. */
    struct idem__buffer output;
};

/* ---- Compiling ---- */

/* jq tells first what is wrong, then the line, then how many errors there are. */
static void complain(void *data, jv message)
{
    struct idem_select *select = data;
    const struct idem__libjq *jq = select->jq;
    jv text = jq->jq_format_error(message);
    const char *from = jq->jv_string_value(text);
    size_t len;

    if (select->complaint[0] == '\0') {
        if (strncmp(from, "jq: error: ", 11) == 0) {
            from += 11;
        }
        len = strcspn(from, "\n");
        (void)snprintf(select->complaint, sizeof(select->complaint), "%.*s",
                       (int)len, from);
    }
    jq->jv_free(text);
}

static void say_nothing(void *data, jv message)
{
    const struct idem_select *select = data;

    select->jq->jv_free(message);
}

static int compile(struct idem_select *select, const char *program,
                   struct idem_error *error)
{
    const struct idem__libjq *jq = select->jq;

    select->state = jq->jq_init();
    if (select->state == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    /* libjq looks for modules in a list that it takes to be there. */
    jq->jq_set_attr(select->state, jq->jv_string("JQ_LIBRARY_PATH"),
                    jq->jv_array());
    jq->jq_set_error_cb(select->state, complain, select);
    jq->jq_set_debug_cb(select->state, say_nothing, select);
    /* jq 1.6 leaves it as it found the memory. */
    jq->jq_set_input_cb(select->state, /* callback= */ NULL, /* data= */ NULL);
    if (jq->jq_compile(select->state, program) == 0) {
        return idem__error(error, IDEM_EINVALID, "not a valid jq program: %s",
                           select->complaint[0] == '\0' ? "no reason is given"
                                                        : select->complaint);
    }
    return 0;
}

/* "." makes [.], so that two values are one. The program by itself was compiled
 * before: of "a] | [b", which would pass here, nothing is left to be seen. A
 * comment at its end is over with its line. */
static int compile_list(struct idem_select *select, const char *program,
                        struct idem_error *error)
{
    size_t size = strlen(program) + sizeof("[\n]");
    char *list = idem__alloc(size);
    int rc;

    if (list == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    (void)snprintf(list, size, "[%s\n]", program);
    select->jq->jq_teardown(&select->state);
    rc = compile(select, list, error);
    idem__free(list);
    return rc;
}

static bool options_are_good(const struct idem_select_options *o)
{
    return o->size == sizeof(*o) && o->input_max > 0 &&
           o->input_max <= IDEM__TREE_LEN_MAX && o->output_max > 0 &&
           o->output_max <= IDEM__TREE_LEN_MAX && o->memory_max > 0 &&
           o->memory_max <= INT64_MAX && o->timeout_ms > 0 &&
           o->timeout_ms <= INT32_MAX;
}

int idem_select_create(const char *program,
                       const struct idem_select_options *options,
                       struct idem_select **ret_select,
                       struct idem_error *ret_error)
{
    struct idem_select *select;
    int rc;

    if (options != NULL && !options_are_good(options)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "select: an option is out of range, or the size of "
                           "the options is not set");
    }
    if (strlen(program) > PROGRAM_MAX) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "a program has at most %d bytes", PROGRAM_MAX);
    }
    select = idem__zalloc(sizeof(*select));
    if (select == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    select->options = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
    if (options != NULL) {
        select->options = *options;
    }
    rc = idem__libjq_get(&select->jq, ret_error);
    if (rc == 0) {
        rc = compile(select, program, ret_error);
    }
    if (rc == 0 && select->options.several) {
        rc = compile_list(select, program, ret_error);
    }
    if (rc != 0) {
        idem_select_destroy(select);
        return rc;
    }
    *ret_select = select;
    return 0;
}

void idem_select_destroy(struct idem_select *select)
{
    if (select == NULL) {
        return;
    }
    if (select->state != NULL) {
        select->jq->jq_teardown(&select->state);
    }
    idem__tree_free(&select->input);
    idem__tree_free(&select->plain);
    idem__tree_free(&select->marked);
    idem__buffer_free(&select->marks);
    idem__buffer_free(&select->bytes);
    idem__buffer_free(&select->output);
    idem__free(select);
}

/* ---- Running ---- */

static int refuse(struct idem_error *error, const char *what)
{
    return idem__error(error, IDEM_EINVALID, "%s", what);
}

static int read_input(struct idem_select *select, struct idem_slice json,
                      struct idem_error *error)
{
    int rc;

    if (json.len > select->options.input_max) {
        return idem__error(error, IDEM_EINVALID,
                           "the JSON text has %zu bytes, and at most %zu are "
                           "taken",
                           json.len, select->options.input_max);
    }
    rc = idem__tree_read(&select->input, json, error);
    if (rc == 0 && select->input.halves) {
        return refuse(error, "the JSON text has half a surrogate pair, which "
                             "jq does not keep");
    }
    return rc;
}

/* What the child did not answer with an output. */
static int explain(const struct idem_select *select,
                   const struct idem__child_answer *answer,
                   enum idem__child_end end, struct idem_error *error)
{
    char span[IDEM__SPAN_MAX];

    switch (answer->said) {
    case IDEM__CHILD_EMPTY:
        return refuse(error, "the program selects nothing");
    case IDEM__CHILD_SEVERAL:
        return refuse(error, "the program gives more than one value: put it "
                             "in [ ] if they belong together");
    case IDEM__CHILD_LONG:
        return idem__error(error, IDEM_EINVALID,
                           "what the program selects has more than %zu bytes",
                           select->options.output_max);
    case IDEM__CHILD_ERROR:
        return idem__error(error, IDEM_EINVALID, "the program fails: %.*s",
                           (int)answer->len, select->bytes.base + answer->at);
    case IDEM__CHILD_NOTHING:
    case IDEM__CHILD_OUTPUT:
        break;
    }
    if (end == IDEM__CHILD_LATE) {
        idem__span(select->options.timeout_ms, span);
        return idem__error(error, IDEM_EINVALID,
                           "the program takes longer than %s", span);
    }
    /* No memory is a crash, too: libjq aborts. */
    return idem__error(error, IDEM_EINVALID,
                       "the program asks for more than %llu bytes of memory, "
                       "or crashes jq",
                       (unsigned long long)select->options.memory_max);
}

/* Nothing, or nothing but nulls: what was to be selected is not there. */
static bool says_nothing(const struct idem__tree *tree)
{
    uint32_t i;

    for (i = 0; i < idem__tree_len(tree); i++) {
        enum idem__tree_kind kind = idem__tree_at(tree, i)->kind;

        if (kind != IDEM__TREE_NULL && kind != IDEM__TREE_ARRAY &&
            kind != IDEM__TREE_OBJECT) {
            return false;
        }
    }
    return true;
}

static struct idem_slice bytes_of(const struct idem_select *select,
                                  const struct idem__child_answer *answer)
{
    return idem_bytes(select->bytes.base + answer->at, answer->len);
}

/* The first answer, with the digits of its numbers as they were. */
static int take_output(struct idem_select *select, bool has_marks,
                       const struct idem__child_answer answers[2],
                       struct idem_error *error)
{
    const struct idem__tree *marked = NULL;
    struct idem_slice plain = bytes_of(select, &answers[0]);
    int rc = idem__tree_read(&select->plain, plain, error);

    if (rc == 0 && has_marks && answers[1].said == IDEM__CHILD_OUTPUT) {
        rc = idem__tree_read(&select->marked, bytes_of(select, &answers[1]),
                             error);
        marked = &select->marked;
    }
    if (rc != 0) {
        return rc;
    }
    if (!select->options.allow_null && says_nothing(&select->plain)) {
        return idem__error(error, IDEM_EINVALID,
                           "the program selects %.*s: what it names is not "
                           "there",
                           plain.len > 60 ? 60 : (int)plain.len,
                           (const char *)plain.base);
    }
    idem__buffer_reset(&select->output, KEEP);
    if (has_marks) {
        return idem__exact_merge(&select->input, &select->plain, marked,
                                 &select->output, error);
    }
    idem__buffer_add(&select->output, plain.base, plain.len);
    return select->output.failed ? idem__error_plain(error, IDEM_ENOMEM) : 0;
}

int idem_select_run(struct idem_select *select, struct idem_slice json,
                    struct idem_slice *ret_output, struct idem_error *ret_error)
{
    struct idem__child_job job = {.jq = select->jq,
                                  .state = select->state,
                                  .output_max = select->options.output_max,
                                  .memory_max = select->options.memory_max,
                                  .timeout_ms = select->options.timeout_ms};
    struct idem__child_answer answers[2];
    enum idem__child_end end;
    bool has_marks;
    int rc = read_input(select, json, ret_error);

    if (rc != 0) {
        return rc;
    }
    idem__buffer_reset(&select->marks, KEEP);
    has_marks = idem__exact_mark(&select->input, &select->marks);
    if (select->marks.failed) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    job.texts[0] = json;
    job.texts[1] = idem__buffer_slice(&select->marks);
    rc = idem__child_run(&job, answers, &select->bytes, &end, ret_error);
    if (rc == 0 && answers[0].said != IDEM__CHILD_OUTPUT) {
        rc = explain(select, &answers[0], end, ret_error);
    }
    if (rc == 0) {
        rc = take_output(select, has_marks, answers, ret_error);
    }
    if (rc == 0) {
        *ret_output = idem__buffer_slice(&select->output);
    }
    return rc;
}

struct idem_slice idem_select_text(struct idem_select *select,
                                   struct idem_slice output)
{
    const struct idem__tree_node *top;

    if (idem__tree_len(&select->plain) == 0 ||
        output.base != select->output.base) {
        return output;
    }
    top = idem__tree_at(&select->plain, 0);
    return top->kind == IDEM__TREE_STRING ? idem__tree_text(&select->plain, top)
                                          : output;
}
