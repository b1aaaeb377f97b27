/* The units of an event for a runtime in another language: lists them, and makes the
 * report to Lambda. Claims nothing. */
#include "aws/lambda/batch.h"
#include "core/error.h"
#include "core/slice.h"

#include <stdio.h>

static void add_print(struct idem__buffer *to, const uint8_t *print)
{
    char text[2 * IDEM_FINGERPRINT_LEN + 1];
    size_t i;

    for (i = 0; i < IDEM_FINGERPRINT_LEN; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", print[i]);
    }
    idem__json_pair(to, "fingerprint", idem_str(text));
}

static const char *answer_of(const struct idem__lambda_rule *rule)
{
    switch (rule->shape) {
    case IDEM__LAMBDA_EVENT:
        return "value";
    case IDEM__LAMBDA_HTTP:
        return "http";
    case IDEM__LAMBDA_RECORDS:
        return "none";
    default:
        return "failures";
    }
}

static void add_number(struct idem__buffer *to, const char *name, size_t n)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%zu", n);
    idem__json_name(to, name);
    idem__buffer_str(to, text);
}

static void add_unit(struct idem_lambda *lambda,
                     const struct idem__lambda_unit *unit,
                     struct idem__buffer *to)
{
    idem__json_pair(to, "scope", idem__buffer_slice(&unit->scope));
    idem__json_pair(to, "key", idem__buffer_slice(&unit->key));
    if (unit->has_fingerprint) {
        add_print(to, unit->fingerprint);
    }
    if (unit->rule->records != NULL) {
        idem__lambda_unit_event(lambda, unit, &lambda->event);
        idem__json_name(to, "event");
        idem__buffer_add(to, lambda->event.base, lambda->event.len);
        to->failed = to->failed || lambda->event.failed;
    }
}

/* Returns the number of the first unit in the group of @item, which names the group: once
 * one of its units failed, those after it wait. */
static size_t group_of(const struct batch *b, const struct item *item)
{
    const struct item *other = b->items;

    while (!idem__slice_equal(idem__buffer_slice(&other->group),
                              idem__buffer_slice(&item->group))) {
        other++;
    }
    return (size_t)(other - b->items);
}

static void add_item(struct batch *b, const struct item *item,
                     struct idem__buffer *to)
{
    if (item->state != ITEM_OPEN) {
        idem__json_pair(to, "error",
                        idem_str(item->state == ITEM_INVALID
                                     ? "it is not valid; see the log"
                                     : idem__batch_no_memory));
    } else {
        add_unit(b->lambda, &item->unit, to);
    }
    if (b->rule->group[0] != NULL) {
        add_number(to, "group", group_of(b, item));
    }
    if (item->first != NULL) {
        add_number(to, "first", (size_t)(item->first - b->items));
    }
}

/* ---- The questions of the runtime ---------------------------------------- */

static int write_batch(struct batch *b, struct idem__buffer *to,
                       struct idem_error *error)
{
    const char *why = idem__batch_read(b);
    size_t i;

    if (why != NULL) {
        return idem__error(error,
                           why == idem__batch_no_memory ? IDEM_ENOMEM
                                                        : IDEM_EINVALID,
                           "%s", why);
    }
    for (i = 0; i < b->len; i++) {
        idem__buffer_str(to, i > 0 ? ",{" : "{");
        add_item(b, &b->items[i], to);
        idem__buffer_str(to, "}");
    }
    return 0;
}

static int write_single(struct idem_lambda *lambda,
                        const struct idem__lambda_rule *rule,
                        struct idem__buffer *to, struct idem_error *error)
{
    struct idem__lambda_unit unit = {.rule = rule};
    int rc;

    if (rule->shape == IDEM__LAMBDA_HTTP) {
        return 0; /* The runtime treats it like any request over HTTP. */
    }
    rc = idem__lambda_unit_init(lambda, &unit, error);
    if (rc == 0) {
        idem__buffer_str(to, "{");
        add_unit(lambda, &unit, to);
        idem__buffer_str(to, "}");
    }
    idem__lambda_unit_finish(&unit);
    return rc;
}

static int write_units(struct batch *b, struct idem_error *error)
{
    struct idem__buffer *to = &b->lambda->response;
    int rc;

    idem__buffer_str(to, "{");
    idem__json_pair(to, "source", idem_str(b->rule->row.name));
    idem__json_pair(to, "answer", idem_str(answer_of(b->rule)));
    idem__json_name(to, "units");
    idem__buffer_str(to, "[");
    rc = b->rule->shape == IDEM__LAMBDA_EVENT ||
                 b->rule->shape == IDEM__LAMBDA_HTTP
             ? write_single(b->lambda, b->rule, to, error)
             : write_batch(b, to, error);
    idem__buffer_str(to, "]}");
    return rc;
}

static int write_report(struct batch *b, struct idem_slice outcomes,
                        struct idem_error *error)
{
    const char *how = outcomes.base;
    const char *why = NULL;
    size_t i;

    if (b->rule->shape < IDEM__LAMBDA_QUEUE) {
        return idem__error(error, IDEM_EINVALID,
                           "its source takes no report of its records");
    }
    why = idem__batch_read(b);
    if (why == NULL && b->len != outcomes.len) {
        why = "there is not one outcome for each record";
    }
    for (i = 0; why == NULL && i < b->len; i++) {
        b->items[i].state = how[i] == 'd'   ? ITEM_DONE
                            : how[i] == 'w' ? ITEM_WAITS
                                            : ITEM_FAILED;
    }
    if (why != NULL) {
        return idem__error(error, IDEM_EINVALID, "%s", why);
    }
    idem__batch_report(b);
    return 0;
}

static int read_event(struct idem_lambda *lambda, struct batch *b,
                      struct idem_error *error)
{
    const char *why;
    int rc = idem__tree_read(&lambda->tree, lambda->now->event, error);

    if (rc != 0) {
        return rc;
    }
    b->rule = idem__lambda_pick(lambda, &why);
    return why == NULL ? idem__lambda_selects_init(lambda, error)
                       : idem__error(error, IDEM_EINVALID, "%s", why);
}

int idem_lambda_units(const struct idem_lambda_options *options,
                      const struct idem_lambda_invocation *invocation,
                      struct idem_slice outcomes, idem_lambda_take_fn *take,
                      void *ctx, struct idem_error *ret_error)
{
    struct idem_lambda lambda = {.options = options,
                                 .now = invocation,
                                 .warned = true};
    struct batch b = {.lambda = &lambda};
    int rc = idem__lambda_check(options, ret_error);

    if (rc != 0) {
        goto done;
    }
    rc = read_event(&lambda, &b, ret_error);
    if (rc != 0) {
        goto done;
    }
    rc = outcomes.base == NULL ? write_units(&b, ret_error)
                               : write_report(&b, outcomes, ret_error);
    if (rc != 0) {
        goto done;
    }
    if (lambda.response.failed) {
        rc = idem__error_plain(ret_error, IDEM_ENOMEM);
        goto done;
    }
    take(ctx, idem__buffer_slice(&lambda.response));

done:
    idem__batch_free(&b);
    idem__lambda_selects_finish(&lambda);
    idem__tree_free(&lambda.tree);
    idem__buffer_free(&lambda.event);
    idem__buffer_free(&lambda.response);
    return rc;
}
