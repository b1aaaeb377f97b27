/* Reads records by name in batches, and receives a store that is moved here. */
#include "contract/store.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/screen.h"
#include "text/text.h"
#include "upkeep/transfer.h"

#include <idem/queue.h>

/* ---- Reading by name ---- */

enum {
    BATCH_LEN = 256,
    BATCH_LEN_REMOTE = 64, /* Few, so that the last is answered in time. */
    BATCH_BYTES = 4 << 20, /* Bodies of a batch, unless one record has more. */
    TRIES_MAX = 5,
};

struct reading {
    struct idem_queue *queue;
    cli_read_fn *each;
    void *ctx;
    unsigned tries[BATCH_LEN]; /* Failed tries of each op of the batch. */
    size_t len;
    uint64_t bytes;
    uint64_t done;
    bool answered; /* The store has answered at least once. */
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

/* Retries on a store that is slow or throttled for a while, but not on one that has never
 * answered. */
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
        return 0; /* Purged since, or past its retention. */
    }
    if (error->code != 0 && error->code != IDEM_ECORRUPT) {
        return cli_fail_with(error);
    }
    return r->each(r->ctx, error->code,
                   error->code == 0 ? idem_op_record(op) : &names);
}

/* Waits for all submitted ops, also after an error. */
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

/* ---- The store that is filled ---- */

static int read_mark(struct cli_arrival *a, struct idem_move *ret_mark)
{
    struct idem_error error = {0};

    *ret_mark = (struct idem_move){0};
    error.code = idem__move_get(a->store, ret_mark, &error);
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

static int set_mark(struct cli_arrival *a, const struct idem_move *mark)
{
    struct idem_error error = {0};

    error.code = idem__move_set(a->store, &a->mark, mark, &error);
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    a->mark = *mark;
    return 0;
}

/* ---- Before the records ---- */

static int check_empty(struct cli_arrival *a)
{
    struct idem_error error = {0};
    int64_t now_ms;
    bool any;

    error.code = cli_store_look(a->store, &now_ms, &any, &error);
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    if (any) {
        cli_say("this store is not empty: move to a new one");
        return CLI_CONFIG;
    }
    return 0;
}

/* Another process may begin work between the check and the mark, but none after the mark.
 * So the store is checked again once it is marked. */
static int begin(struct cli_arrival *a, const uint8_t id[16])
{
    const struct idem_move before = a->mark;
    struct idem_move mark = before;
    int status = check_empty(a);

    mark.state = IDEM_MOVE_FILLING;
    mark.marked_ms = before.store_ms;
    memcpy(mark.id, id, sizeof(mark.id));
    if (status == 0) {
        status = set_mark(a, &mark);
    }
    if (status == 0) {
        status = check_empty(a);
        if (status != 0) {
            (void)set_mark(a, &before);
        }
    }
    return status;
}

int cli_arrive(struct cli_arrival *arrival, struct idem_store *store,
               const uint8_t id[16])
{
    struct cli_arrival *a = arrival;
    bool same;
    int status;

    if (idem_store_url(store) == NULL) {
        cli_say("a store in memory ends with this command: name another one");
        return CLI_USAGE;
    }
    a->store = store;
    status = read_mark(a, &a->mark);
    same = memcmp(a->mark.id, id, sizeof(a->mark.id)) == 0;
    if (status != 0) {
        return status;
    }
    switch (a->mark.state) {
    case IDEM_MOVE_LEFT:
        cli_say("this store has itself been moved%s%s: import into another one",
                a->mark.place[0] == '\0' ? "" : " to ", a->mark.place);
        return CLI_CONFIG;
    case IDEM_MOVE_FILLING:
        if (!same) {
            cli_say("another move is filling this store: move to a new one");
        }
        return same ? 0 : CLI_CONFIG;
    case IDEM_MOVE_HERE:
        a->is_here = same;
        return same ? 0 : begin(a, id);
    case IDEM_MOVE_NONE:
        break;
    }
    return begin(a, id);
}

/* ---- What is there ---- */

/* Ignores the nonce, which is new each time an owner is cut off. */
static bool is_same(const struct idem_record *there,
                    const struct idem_record *ours)
{
    static uint8_t heads[2][IDEM_HEAD_MAX];
    struct idem_record record = *there;
    size_t lens[2];

    memcpy(record.nonce, ours->nonce, sizeof(record.nonce));
    return idem__record_encode(&record, heads[0], sizeof(heads[0]), &lens[0]) ==
               0 &&
           idem__record_encode(ours, heads[1], sizeof(heads[1]), &lens[1]) ==
               0 &&
           lens[0] == lens[1] && memcmp(heads[0], heads[1], lens[0]) == 0;
}

static void compare(struct cli_arrival *a, const struct idem_record *there,
                    const struct idem_record *ours)
{
    char shown[128];

    (void)cli_escape(ours->key, shown, sizeof(shown));
    if (there->fence != ours->fence) {
        a->others++;
        cli_say("\"%s\": this store has a different attempt", shown);
    } else if (!is_same(there, ours)) {
        cli_say(
            "\"%s\" has changed in the old store since it was imported; this "
            "store keeps what it has (see both: idem show)",
            shown);
    }
}

int cli_arrive_kept(struct cli_arrival *arrival,
                    const struct idem_record *record)
{
    struct idem_error error = {0};
    struct idem_answer *answer;

    error.code =
        idem_get(arrival->store, record->scope, record->key, &answer, &error);
    if (error.code == IDEM_ENOTFOUND) {
        return 0; /* It is past its retention. */
    }
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    compare(arrival, idem_answer_record(answer), record);
    idem_answer_destroy(answer);
    return 0;
}

/* ---- After the records ---- */

static int check_whole(const struct cli_arrival *a, uint64_t refused)
{
    if (!a->has_end) {
        cli_say("the export is incomplete, and nothing begins in this store "
                "yet: repeat idem export --open | idem import");
        return CLI_BUSY;
    }
    if (refused > 0 || a->records != a->count) {
        cli_say("imported %llu of %llu records: nothing begins in this store "
                "yet",
                (unsigned long long)(a->records - refused),
                (unsigned long long)a->count);
        return CLI_CORRUPT;
    }
    if (a->others > 0) {
        cli_say("this store was in use while it was filled: move to a new one");
        return CLI_UNKNOWN;
    }
    return 0;
}

int cli_arrive_end(struct cli_arrival *arrival, uint64_t refused)
{
    struct idem_move mark = arrival->mark;
    int status = check_whole(arrival, refused);

    if (status != 0 || arrival->is_here) {
        return status;
    }
    mark.state = IDEM_MOVE_HERE;
    mark.marked_ms = arrival->store_ms;
    mark.fence_floor = arrival->fence_floor;
    mark.store_ms = arrival->store_ms;
    return set_mark(arrival, &mark);
}
