/* A jq program that is compiled once and run over many texts. */
#include "key/select.h"

#include "base/heap.h"
#include "core/error.h"
#include "key/tree.h"

enum {
    PROGRAM_MAX = 64 * 1024,
    KEEP_MAX = 64, /* Children that stay. */
};

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
           o->timeout_ms <= INT32_MAX && o->keep <= KEEP_MAX;
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
    idem_selection_destroy(select->last);
    idem__select_end_children(select);
    if (select->state != NULL) {
        select->jq->jq_teardown(&select->state);
    }
    idem__free(select);
}
