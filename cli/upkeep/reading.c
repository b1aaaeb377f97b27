/* The records of a store that were noted by name, read in batches. */
#include "upkeep/reading.h"

#include "contract/store.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/progress.h"

#include <idem/queue.h>

enum {
    BATCH_LEN = 256,
    BATCH_LEN_REMOTE = 64, /* So that the last does not wait for too long. */
    BATCH_BYTES = 4 << 20, /* Of bodies, unless one record has more. */
    TRIES_MAX = 5,
};

struct reading {
    struct idem_queue *queue;
    cli_read_fn *each;
    void *ctx;
    unsigned tries[BATCH_LEN]; /* In vain, of each op of the batch. */
    size_t len;
    uint64_t bytes;
    uint64_t done;
    bool answered; /* By the store, at all. */
};

static int submit(struct reading *r, const struct cli_name *name)
{
    struct idem_error error = {0};
    struct idem_op *op;

    error.code = idem_op_get(name->scope, name->key, &op, &error);
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    r->tries[r->len] = 0;
    idem_op_set_user(op, &r->tries[r->len]);
    error.code = idem_queue_submit(r->queue, op, &error);
    if (error.code != 0) {
        idem_op_destroy(op);
        return cli_fail_with(&error);
    }
    r->len++;
    r->bytes += name->bytes;
    return 0;
}

/* A store that is slow or throttled for a while is given more time. One that
 * never answered is not asked again. */
static bool ask_again(struct reading *r, struct idem_op *op)
{
    unsigned *tries = idem_op_user(op);
    struct idem_error error;

    if (idem_error_kind(idem_op_code(op)) != IDEM_KIND_RETRY) {
        r->answered = true;
        return false;
    }
    return r->answered && ++*tries < TRIES_MAX &&
           idem_queue_submit(r->queue, op, &error) == 0;
}

static int give(struct reading *r, const struct idem_op *op)
{
    const struct idem_error *error = idem_op_error(op);
    struct idem_record names = {.scope = op->scope, .key = op->key};

    if (error->code == IDEM_ENOTFOUND) {
        return 0; /* It was purged since, or its retention is over. */
    }
    if (error->code != 0 && error->code != IDEM_ECORRUPT) {
        return cli_fail_with(error);
    }
    return r->each(r->ctx, error->code,
                   error->code == 0 ? idem_op_record(op) : &names);
}

/* Waits for all that were submitted, whatever comes of it. */
static int settle(struct reading *r, int status)
{
    struct idem_op *op;

    while ((op = idem_queue_reap(r->queue, -1)) != NULL) {
        if (status == 0 && ask_again(r, op)) {
            continue;
        }
        if (status == 0) {
            status = give(r, op);
        }
        idem_op_destroy(op);
        r->done++;
    }
    r->len = 0;
    r->bytes = 0;
    return status;
}

static int read_all(struct reading *r, struct cli_names *names, size_t len_max,
                    const char *doing)
{
    int status = cli_names_rewind(names);
    struct cli_name name;

    while (status == 0 && cli_names_next(names, &name)) {
        if (r->len == len_max ||
            (r->len > 0 && r->bytes + name.bytes > BATCH_BYTES)) {
            status = settle(r, status);
        }
        if (status == 0) {
            status = submit(r, &name);
        }
        cli_progress(doing, r->done, names->len);
    }
    status = settle(r, status);
    if (status == 0 && r->done != names->len) {
        cli_say("cannot read the keys back from a temporary file");
        status = CLI_OUTPUT_FAILED;
    }
    cli_progress_end();
    return status;
}

int cli_read_named(struct idem_store *store, struct cli_names *names,
                   const char *doing, cli_read_fn *each, void *ctx)
{
    bool remote = idem_store_is_remote(store);
    struct reading r = {.each = each, .ctx = ctx};
    struct idem_error error = {0};
    int status;

    error.code = idem_queue_create(store, &r.queue, &error);
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    status = read_all(&r, names, remote ? BATCH_LEN_REMOTE : BATCH_LEN, doing);
    idem_queue_destroy(r.queue);
    return status;
}
