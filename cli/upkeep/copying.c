/* Every record of one store into another.
 *
 * First the names of all records are noted, then they are taken over in batches:
 * read from the source, looked up at the target, and added there unless a
 * record of its own is in the way. A store never writes over what counts
 * (idem_import()), so that all of it can be killed at any point and run
 * again. */
#include "upkeep/copying.h"

#include "contract/store.h"
#include "process/clock.h"
#include "process/random.h"
#include "record/names.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/progress.h"
#include "text/text.h"

#include <idem/operator.h>
#include <idem/queue.h>
#include <stdlib.h>

enum {
    BATCH_LEN = 256,
    BATCH_LEN_REMOTE = 64, /* So that the last does not wait for too long. */
    BATCH_BYTES = 4 << 20, /* Of bodies, unless one record has more. */
    TRIES_MAX = 5,
    SAID_MAX = 20, /* Records that are told about one by one. */
};

/* One record on its way. */
struct item {
    struct idem_op *read; /* From the source; NULL: done with. */
    unsigned tries;       /* That were in vain. */
};

struct copying {
    struct idem_store *from;
    struct idem_store *to;
    struct idem_queue *reads;
    struct idem_queue *writes;
    const struct cli_copy_options *options;
    struct cli_names names;
    struct item items[BATCH_LEN];
    size_t items_len;
    size_t items_max;
    uint64_t bytes;
    bool answered; /* By a store, at all. */
    uint64_t done;

    struct cli_copied *told;
    uint64_t said;
};

static void say_of(struct copying *c, struct idem_slice key, const char *what)
{
    char shown[128];

    c->said++;
    if (c->said <= SAID_MAX) {
        cli_say("\"%s\": %s", cli_escape(key, shown, sizeof(shown)), what);
    }
}

static void show_progress(const struct copying *c)
{
    cli_progress("copying", c->done, c->names.len);
}

/* ---- Batches ---- */

static void drop(struct item *item)
{
    idem_op_destroy(item->read);
    item->read = NULL;
}

static int submit(struct idem_queue *queue, struct idem_op *op,
                  struct item *item)
{
    struct idem_error error = {0};

    idem_op_set_user(op, item);
    item->tries = 0;
    error.code = idem_queue_submit(queue, op, &error);
    if (error.code != 0) {
        idem_op_destroy(op);
        return cli_fail_with(&error);
    }
    return 0;
}

static int submit_get(struct idem_queue *queue, struct idem_slice scope,
                      struct idem_slice key, struct item *item)
{
    struct idem_error error = {0};
    struct idem_op *op;

    error.code = idem_op_get(scope, key, &op, &error);
    return error.code != 0 ? cli_fail_with(&error) : submit(queue, op, item);
}

/* A store that is slow or throttled for a while is given more time. One that
 * never answered is not asked again. */
static bool ask_again(struct copying *c, struct idem_queue *queue,
                      struct item *item, struct idem_op *op)
{
    struct idem_error error;

    if (idem_error_kind(idem_op_code(op)) != IDEM_KIND_RETRY) {
        c->answered = true;
        return false;
    }
    return c->answered && ++item->tries < TRIES_MAX &&
           idem_queue_submit(queue, op, &error) == 0;
}

typedef int answered_fn(struct copying *c, struct item *item,
                        struct idem_op *op);

/* Waits for all of @queue, whatever comes of it. @answered keeps the op in @item
 * or destroys it. */
static int settle(struct copying *c, struct idem_queue *queue,
                  answered_fn *answered, int status)
{
    struct idem_op *op;

    while ((op = idem_queue_reap(queue, -1)) != NULL) {
        struct item *item = idem_op_user(op);

        if (status == 0 && ask_again(c, queue, item, op)) {
            continue;
        }
        if (status == 0) {
            status = answered(c, item, op);
        } else {
            idem_op_destroy(op);
        }
    }
    return status;
}

static const struct idem_record *source_of(const struct item *item)
{
    return idem_op_record(item->read);
}

/* The record of @item as it is to be at the target. */
static int placed(const struct copying *c, const struct item *item,
                  struct idem_record *ret_record)
{
    struct idem_error error = {0};

    *ret_record = *source_of(item);
    if (ret_record->scope.len > 0 || c->options->scope.len == 0) {
        return 0;
    }
    ret_record->scope = c->options->scope;
    error.code = idem_id(ret_record->scope, ret_record->key, ret_record->id);
    return error.code != 0 ? cli_fail_with(&error) : 0;
}

/* ---- Reading ---- */

static int was_read(struct copying *c, struct item *item, struct idem_op *op)
{
    const struct idem_error *error = idem_op_error(op);
    int status = 0;

    if (error->code == 0) {
        item->read = op;
        return 0;
    }
    if (error->code == IDEM_ENOTFOUND) {
        c->told->gone++;
    } else if (error->code == IDEM_ECORRUPT) {
        c->told->corrupt++;
        say_of(c, op->key, "it cannot be trusted, and is left out");
    } else {
        status = cli_fail_with(error);
    }
    idem_op_destroy(op);
    return status;
}

/* ---- Looking at the target ---- */

/* How much of a life has been lived; of two records of one attempt, the one that
 * is further on is the newer. */
static int progress_of(const struct idem_record *record)
{
    switch (idem_record_status(record)) {
    case IDEM_STATUS_IN_PROGRESS:
        return 0;
    case IDEM_STATUS_UNKNOWN:
        return 1;
    case IDEM_STATUS_FAILED:
        return 2;
    case IDEM_STATUS_COMPLETED:
    case IDEM_STATUS_RELEASED:
        return 3;
    case IDEM_STATUS_RETRY: /* It may have been any of them, and reopened. */
        break;
    }
    return 4;
}

static bool is_newer(const struct idem_record *there,
                     const struct idem_record *ours)
{
    return there->fence > ours->fence ||
           (there->fence == ours->fence &&
            progress_of(there) > progress_of(ours));
}

static bool is_same(const struct idem_record *there,
                    const struct idem_record *ours)
{
    static uint8_t heads[2][IDEM_HEAD_MAX];
    size_t lens[2];

    return idem__record_encode(there, heads[0], sizeof(heads[0]), &lens[0]) ==
               0 &&
           idem__record_encode(ours, heads[1], sizeof(heads[1]), &lens[1]) ==
               0 &&
           lens[0] == lens[1] && memcmp(heads[0], heads[1], lens[0]) == 0;
}

/* It is in the way of ours; idem__decide_import() says so too. */
static bool counts(const struct idem_record *there,
                   const struct idem_record *ours)
{
    return there->status != IDEM_STATUS_RELEASED || there->fence >= ours->fence;
}

static int compare(struct copying *c, struct item *item,
                   const struct idem_record *there)
{
    struct idem_record record;
    const struct idem_record *ours = &record;
    int status = placed(c, item, &record);

    if (status != 0 || !counts(there, ours)) {
        return status;
    }
    if (is_same(there, ours)) {
        c->told->same++;
    } else if (is_newer(there, ours)) {
        c->told->newer++;
    } else {
        c->told->differ++;
        say_of(
            c, ours->key,
            "the target has another record of it, which is not newer and was "
            "left alone; see both: idem show");
    }
    drop(item);
    return 0;
}

static int was_looked_up(struct copying *c, struct item *item,
                         struct idem_op *op)
{
    const struct idem_error *error = idem_op_error(op);
    int status = 0;

    if (error->code == 0) {
        status = compare(c, item, idem_op_record(op));
    } else if (error->code == IDEM_ECORRUPT) {
        c->told->differ++;
        say_of(c, op->key, "the record at the target cannot be trusted");
        drop(item);
    } else if (error->code != IDEM_ENOTFOUND) {
        status = cli_fail_with(error);
    }
    idem_op_destroy(op);
    return status;
}

/* ---- Adding ---- */

/* The status that an attempt in progress gets at the target. Its owner does not
 * know of the target, and cannot end it there. */
static int turn_unknown(const struct copying *c,
                        const struct idem_record *record,
                        struct idem_decision *ret_decision)
{
    static char note[256];
    struct idem_now now = {.store_ms = cli_now_ms()};
    uint8_t nonce[16];

    if (cli_random(nonce, sizeof(nonce)) != 0) {
        cli_say("random numbers are not available");
        return CLI_INTERNAL;
    }
    (void)snprintf(note, sizeof(note),
                   "it was in progress in %.180s when it was copied from there",
                   idem_store_url(c->from));
    idem__decide_restored(record, nonce, idem_str(note), &now, ret_decision);
    if (ret_decision->code != 0) {
        cli_say("%s", ret_decision->text);
        return CLI_INTERNAL;
    }
    ret_decision->next.input = record->input;
    return 0;
}

static int add(struct copying *c, struct item *item)
{
    struct idem_record there;
    const struct idem_record *record = &there;
    struct idem_decision unknown;
    struct idem_error error = {0};
    struct idem_op *op;
    int status = placed(c, item, &there);

    if (status != 0) {
        return status;
    }
    if (record->status == IDEM_STATUS_IN_PROGRESS) {
        if (c->options->open == CLI_COPY_OPEN_LEAVE) {
            c->told->in_progress++;
            say_of(c, record->key, "it is in progress, and is left out");
            return 0;
        }
        status = turn_unknown(c, record, &unknown);
        if (status != 0) {
            return status;
        }
        record = &unknown.next;
    }
    error.code = idem_op_import(record, &op, &error);
    if (error.code == IDEM_EINVALID) {
        c->told->refused++;
        say_of(c, record->key, error.text);
        return 0;
    }
    return error.code != 0 ? cli_fail_with(&error)
                           : submit(c->writes, op, item);
}

static int was_added(struct copying *c, struct item *item, struct idem_op *op)
{
    const struct idem_error *error = idem_op_error(op);
    int status = 0;

    /* An earlier try may have added it, though its answer was lost. */
    if (error->code == 0 && (idem_op_added(op) || item->tries > 0)) {
        c->told->copied++;
        c->told->unknown += source_of(item)->status == IDEM_STATUS_IN_PROGRESS;
    } else if (error->code == 0) {
        /* Somebody was faster, or its retention is over by now. */
        c->told->gone++;
    } else if (error->code == IDEM_EINVALID || error->code == IDEM_ECORRUPT) {
        c->told->refused++;
        say_of(c, source_of(item)->key, error->text);
    } else {
        status = cli_fail_with(error);
    }
    idem_op_destroy(op);
    return status;
}

/* ---- All of it ---- */

static int look_up_batch(struct copying *c)
{
    int status = 0;
    size_t i;

    for (i = 0; i < c->items_len && status == 0; i++) {
        struct item *item = &c->items[i];

        struct idem_record there;

        if (item->read != NULL) {
            status = placed(c, item, &there);
        }
        if (item->read != NULL && status == 0) {
            status = submit_get(c->writes, there.scope, there.key, item);
        }
    }
    return settle(c, c->writes, was_looked_up, status);
}

static int add_batch(struct copying *c)
{
    int status = 0;
    size_t i;

    for (i = 0; i < c->items_len && status == 0; i++) {
        if (c->items[i].read != NULL) {
            status = add(c, &c->items[i]);
        }
    }
    return settle(c, c->writes, was_added, status);
}

/* An op that was submitted is settled in any case. */
static int finish_batch(struct copying *c, int status)
{
    size_t i;

    status = settle(c, c->reads, was_read, status);
    if (status == 0) {
        status = look_up_batch(c);
    }
    if (status == 0) {
        status = add_batch(c);
    }
    for (i = 0; i < c->items_len; i++) {
        drop(&c->items[i]);
    }
    c->done += c->items_len;
    c->items_len = 0;
    c->bytes = 0;
    show_progress(c);
    return status;
}

static int copy_named(struct copying *c)
{
    struct cli_name name;
    int status = cli_names_rewind(&c->names);

    while (status == 0 && cli_names_next(&c->names, &name)) {
        if (c->items_len == c->items_max ||
            (c->items_len > 0 && c->bytes + name.bytes > BATCH_BYTES)) {
            status = finish_batch(c, 0);
        }
        if (status == 0) {
            c->bytes += name.bytes;
            status = submit_get(c->reads, name.scope, name.key,
                                &c->items[c->items_len++]);
        }
    }
    return finish_batch(c, status);
}

static int note_name(void *ctx, int code, const struct idem_record *record)
{
    struct copying *c = ctx;

    if (code != 0) {
        c->told->corrupt++;
        say_of(c, record->key, "it cannot be trusted, and is left out");
        return 0;
    }
    return !cli_names_add(&c->names, record);
}

static int copy_all(struct copying *c)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_error error = {0};
    int status;

    error.code = idem_list(c->from, &filter, note_name, c,
                           /* ret_now_ms= */ NULL, &error);
    status = error.code != 0 ? cli_fail_with(&error) : copy_named(c);
    cli_progress_end();
    return status;
}

static int with_queues(struct copying *c)
{
    struct idem_error error = {0};
    int status;

    error.code = idem_queue_create(c->from, &c->reads, &error);
    if (error.code == 0) {
        error.code = idem_queue_create(c->to, &c->writes, &error);
    }
    status =
        error.code != 0 ? cli_fail_with(&error) : cli_names_open(&c->names);
    if (status == 0) {
        status = copy_all(c);
        cli_names_close(&c->names);
    }
    idem_queue_destroy(c->writes);
    idem_queue_destroy(c->reads);
    return status;
}

int cli_copying(struct idem_store *from, struct idem_store *to,
                const struct cli_copy_options *options,
                struct cli_copied *ret_copied)
{
    bool remote = idem_store_is_remote(from) || idem_store_is_remote(to);
    struct copying *c = calloc(1, sizeof(*c));
    int status;

    memset(ret_copied, 0, sizeof(*ret_copied));
    if (c == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    c->from = from;
    c->to = to;
    c->options = options;
    c->told = ret_copied;
    c->items_max = remote ? BATCH_LEN_REMOTE : BATCH_LEN;
    status = with_queues(c);
    if (c->said > SAID_MAX) {
        cli_say("and %llu records more",
                (unsigned long long)(c->said - SAID_MAX));
    }
    free(c);
    return status;
}
