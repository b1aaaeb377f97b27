/* Runs of a program: started, waited for, read. */
#include "base/heap.h"
#include "base/host.h"
#include "base/span.h"
#include "core/error.h"
#include "key/request.h"
#include "key/select.h"
#include "key/tree.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

struct idem_selection {
    struct idem_select *select;
    struct idem__child *child; /* NULL: it was given back. */
    pid_t owner;
    int64_t until_ms; /* idem__mono_ms() */

    struct idem__buffer bytes; /* Of the answer. */
    bool ready;
    bool cut_off;
    bool died; /* Cut off because the child ended without an answer. */
    int code;  /* When it is ready: 0, the output; else why there is none. */
    struct idem_slice output;
    struct idem_error error;
    struct idem__tree tree; /* Of an output that is a string. */
};

/* ---- Children ---- */

static void collect(struct idem_select *select, bool wait)
{
    struct idem__child **at = &select->ending;

    while (*at != NULL) {
        struct idem__child *next = (*at)->next;

        if (idem__child_gone(*at, wait)) {
            *at = next;
        } else {
            at = &(*at)->next;
        }
    }
}

static void end_child(struct idem_select *select, struct idem__child *child,
                      bool at_work)
{
    idem__child_end(child, at_work);
    child->next = select->ending;
    select->ending = child;
}

static void forget(struct idem__child *child)
{
    while (child != NULL) {
        struct idem__child *next = child->next;

        idem__child_forget(child);
        child = next;
    }
}

/* After a fork the children are the parent's: two processes that ask one child would
 * get each other's answers. */
static void check_owner(struct idem_select *select)
{
    pid_t me = getpid();

    if (select->owner != me) {
        forget(select->idle);
        forget(select->ending);
        select->idle = NULL;
        select->idle_len = 0;
        select->ending = NULL;
        select->owner = me;
    }
}

void idem__select_end_children(struct idem_select *select)
{
    struct idem__child *child;

    check_owner(select);
    while ((child = select->idle) != NULL) {
        select->idle = child->next;
        end_child(select, child, /* at_work= */ false);
    }
    select->idle_len = 0;
    collect(select, /* wait= */ true);
}

/* One that waits, or a new one. */
static int give(struct idem_select *select, const struct idem__child_text *text,
                struct idem__child **ret_child, struct idem_error *error)
{
    const struct idem__child_job job = {select->jq, select->state,
                                        &select->options};
    struct idem__child *child;

    while ((child = select->idle) != NULL) {
        select->idle = child->next;
        select->idle_len--;
        if (idem__child_send(child, text)) {
            *ret_child = child;
            return 0;
        }
        end_child(select, child, /* at_work= */ false);
    }
    return idem__child_start(&job, text, select->options.keep > 0, ret_child,
                             error);
}

/* The child of a selection that has its answer, or wants none any more. */
static void give_back(struct idem_select *select, struct idem__child *child,
                      bool answered)
{
    if (answered && select->idle_len < select->options.keep &&
        child->runs < IDEM__CHILD_RUNS_MAX) {
        child->next = select->idle;
        select->idle = child;
        select->idle_len++;
    } else {
        end_child(select, child, !answered);
    }
    collect(select, /* wait= */ false);
}

/* ---- A selection ---- */

static int start(struct idem_select *select,
                 const struct idem__child_text *text,
                 struct idem_selection **ret_selection,
                 struct idem_error *error)
{
    struct idem_selection *s = idem__zalloc(sizeof(*s));
    int rc;

    if (s == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    check_owner(select);
    collect(select, /* wait= */ false);
    rc = give(select, text, &s->child, error);
    if (rc != 0) {
        idem__free(s);
        return rc;
    }
    s->select = select;
    s->owner = select->owner;
    s->until_ms = idem__time_add(idem__mono_ms(), select->options.timeout_ms);
    *ret_selection = s;
    return 0;
}

int idem_select_start(struct idem_select *select, struct idem_slice json,
                      struct idem_selection **ret_selection,
                      struct idem_error *ret_error)
{
    const struct idem__child_text text = {.json = json};

    if (json.len > select->options.input_max) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "the JSON text has %zu bytes, and at most %zu are "
                           "taken",
                           json.len, select->options.input_max);
    }
    return start(select, &text, ret_selection, ret_error);
}

int idem_select_start_request(struct idem_select *select,
                              const struct idem_select_request *request,
                              struct idem_selection **ret_selection,
                              struct idem_error *ret_error)
{
    const struct idem__child_text text = {.request = request};

    if (idem__request_packed_len(request) > select->options.input_max) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "the request has more than %zu bytes",
                           select->options.input_max);
    }
    return start(select, &text, ret_selection, ret_error);
}

int idem_selection_fd(const struct idem_selection *selection)
{
    return selection->child->fd;
}

int64_t idem_selection_left_ms(const struct idem_selection *selection)
{
    int64_t left_ms = selection->until_ms - idem__mono_ms();

    return selection->ready || left_ms < 0 ? 0 : left_ms;
}

static void fail(struct idem_selection *s, int code)
{
    s->code = idem__error_plain(&s->error, code);
}

static void cut_off(struct idem_selection *s, bool late)
{
    char span[IDEM__SPAN_MAX];

    s->cut_off = true;
    if (late) {
        idem__span(s->select->options.timeout_ms, span);
        s->code = idem__error(&s->error, IDEM_EINVALID,
                              "the program takes longer than %s", span);
    } else {
        /* No memory is a crash, too: libjq aborts. */
        s->died = true;
        s->code = idem__error(
            &s->error, IDEM_EINVALID,
            "the program asks for more than %llu bytes of memory, or crashes "
            "jq, or its process was killed",
            (unsigned long long)s->select->options.memory_max);
    }
}

/* The bytes of a string are made now, while there still can be an error. */
static void take(struct idem_selection *s, int code, struct idem_slice text)
{
    if (code > 0) {
        cut_off(s, /* late= */ false);
    } else if (code == IDEM_ENOMEM) {
        fail(s, code);
    } else if (code != 0) {
        s->code = idem__error(&s->error, code, "%.*s", (int)text.len,
                              (const char *)text.base);
    } else {
        s->output = text;
        if (text.len > 0 && *(const char *)text.base == '"') {
            s->code = idem__tree_read(&s->tree, text, &s->error);
        }
    }
}

bool idem_selection_ready(struct idem_selection *selection)
{
    struct idem_selection *s = selection;
    size_t max = s->select->options.output_max;
    struct idem_slice text;
    int code;

    if (s->ready) {
        return true;
    }
    if (s->owner != getpid()) {
        s->ready = true;
        s->code = idem__error(&s->error, IDEM_EINVALID,
                              "the selection belongs to the process that "
                              "started it");
    } else if (idem__child_read(s->child,
                                max > sizeof(s->error.text)
                                    ? max
                                    : sizeof(s->error.text),
                                &s->bytes, &code, &text)) {
        s->ready = true;
        take(s, code, text);
    } else if (idem_selection_left_ms(s) == 0) {
        s->ready = true;
        cut_off(s, /* late= */ true);
    }
    return s->ready;
}

int idem_selection_output(const struct idem_selection *selection,
                          struct idem_slice *ret_output,
                          struct idem_error *ret_error)
{
    if (!selection->ready) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "the selection is not ready");
    }
    if (selection->code != 0) {
        return idem__error(ret_error, selection->code, "%s",
                           selection->error.text);
    }
    *ret_output = selection->output;
    return 0;
}

struct idem_slice idem_selection_text(const struct idem_selection *selection)
{
    return idem__tree_len(&selection->tree) == 0
               ? selection->output
               : idem__tree_text(&selection->tree,
                                 idem__tree_at(&selection->tree, 0));
}

bool idem_selection_cut_off(const struct idem_selection *selection)
{
    return selection->cut_off;
}

static void let_go(struct idem_selection *s)
{
    if (s->child == NULL) {
        return;
    }
    if (s->owner != getpid()) {
        idem__child_forget(s->child);
    } else {
        check_owner(s->select);
        give_back(s->select, s->child,
                  s->ready && !s->cut_off && !s->bytes.failed);
    }
    s->child = NULL;
}

void idem_selection_destroy(struct idem_selection *selection)
{
    struct idem_selection *s = selection;

    if (s == NULL) {
        return;
    }
    let_go(s);
    idem__tree_free(&s->tree);
    idem__buffer_free(&s->bytes);
    idem__free(s);
}

/* ---- The blocking form ---- */

static void wait_for(struct idem_selection *s)
{
    while (!idem_selection_ready(s)) {
        struct pollfd p = {.fd = idem_selection_fd(s), .events = POLLIN};
        int64_t left_ms = idem_selection_left_ms(s);

        (void)poll(&p, 1, left_ms > INT_MAX ? INT_MAX : (int)left_ms);
    }
}

/* A child that ended without an answer may have been killed by somebody else, such as
 * the kernel for want of memory, who knows nothing of the text: another child is asked
 * once, within the same time. Where that one ends too, the text or the program is the
 * cause. */
int idem_select_run(struct idem_select *select, struct idem_slice json,
                    struct idem_slice *ret_output, struct idem_error *ret_error)
{
    struct idem_selection *s;
    int rc;

    idem_selection_destroy(select->last);
    select->last = NULL;
    rc = idem_select_start(select, json, &s, ret_error);
    if (rc != 0) {
        return rc;
    }
    wait_for(s);
    if (s->died) {
        int64_t until_ms = s->until_ms;

        idem_selection_destroy(s);
        collect(select, /* wait= */ true);
        rc = idem_select_start(select, json, &s, ret_error);
        if (rc != 0) {
            return rc;
        }
        s->until_ms = until_ms;
        wait_for(s);
    }
    /* A caller that waits expects nothing to be left of the run: a runtime on
     * Lambda is frozen before its next one, with all the children that it has. */
    let_go(s);
    collect(select, /* wait= */ true);
    select->last = s;
    return idem_selection_output(s, ret_output, ret_error);
}

bool idem_select_cut_off(const struct idem_select *select)
{
    return select->last != NULL && select->last->cut_off;
}

struct idem_slice idem_select_text(struct idem_select *select,
                                   struct idem_slice output)
{
    const struct idem_selection *last = select->last;

    return last == NULL || output.base != last->output.base
               ? output
               : idem_selection_text(last);
}
