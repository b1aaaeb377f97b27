/* What is open in a store, read once. */
#include "look.h"

#include "alert.h"
#include "clock.h"
#include "fields.h"

#include <stdlib.h>

/* Moves what @slice points to into @to. */
static char *keep(char *to, struct idem_slice *slice)
{
    if (slice->len > 0) {
        memcpy(to, slice->base, slice->len);
    }
    slice->base = to;
    return to + slice->len;
}

/* The texts share one block, which the scope begins. */
static bool keep_texts(struct idem_record *copy,
                       const struct idem_record *record)
{
    struct idem_slice *slices[] = {&copy->scope, &copy->key, &copy->owner,
                                   &copy->error, &copy->note};
    size_t len = 1;
    char *block;
    size_t i;

    memset(copy, 0, sizeof(*copy));
    copy->scope = record->scope;
    copy->key = record->key;
    copy->owner = record->owner;
    copy->error = record->error;
    copy->note = record->note;
    for (i = 0; i < sizeof(slices) / sizeof(slices[0]); i++) {
        len += slices[i]->len;
    }
    block = malloc(len);
    if (block == NULL) {
        return false;
    }
    for (i = 0; i < sizeof(slices) / sizeof(slices[0]); i++) {
        block = keep(block, slices[i]);
    }
    return true;
}

static void copy_numbers(struct idem_record *copy, const struct idem_record *r)
{
    copy->status = r->status;
    copy->on_expired_lease = r->on_expired_lease;
    copy->fence = r->fence;
    copy->attempts = r->attempts;
    copy->retried = r->retried;
    copy->created_ms = r->created_ms;
    copy->started_ms = r->started_ms;
    copy->lease_ms = r->lease_ms;
    copy->lease_end_ms = r->lease_end_ms;
    copy->expected_ms = r->expected_ms;
    copy->ended_ms = r->ended_ms;
    copy->expires_ms = r->expires_ms;
    copy->retention_ms = r->retention_ms;
    copy->by_lease = r->by_lease;
    copy->retry = r->retry;
    copy->overdue = r->overdue;
}

static struct cli_open *make_room(struct cli_look *look)
{
    size_t room = look->room == 0 ? 64 : 2 * look->room;
    struct cli_open *more;

    if (look->len < look->room) {
        return &look->open[look->len];
    }
    more = realloc(look->open, room * sizeof(*more));
    if (more == NULL) {
        return NULL;
    }
    look->open = more;
    look->room = room;
    return &look->open[look->len];
}

bool cli_open_init(struct cli_open *open, int code, const struct idem_record *r)
{
    if (!keep_texts(&open->record, r)) {
        memset(open, 0, sizeof(*open));
        return false;
    }
    memcpy(open->record.id, r->id, sizeof(open->record.id));
    open->unreadable = code != 0;
    open->exit_status = -1;
    open->http_status = -1;
    if (code == 0) {
        copy_numbers(&open->record, r);
        open->exit_status = cli_outcome_exit(r);
        open->http_status = cli_outcome_http(r);
    }
    return true;
}

void cli_open_finish(struct cli_open *open)
{
    free((char *)(uintptr_t)open->record.scope.base);
    memset(open, 0, sizeof(*open));
}

static int rank(const struct cli_open *open)
{
    if (open->unreadable) {
        return 0;
    }
    if (open->record.overdue) {
        return 1;
    }
    switch (idem_record_status(&open->record)) {
    case IDEM_STATUS_UNKNOWN:
        return 2;
    case IDEM_STATUS_FAILED:
        return 3;
    case IDEM_STATUS_RETRY:
        return 4;
    case IDEM_STATUS_COMPLETED:
        return 6;
    default:
        return 5;
    }
}

int cli_open_compare(const void *a, const void *b)
{
    const struct cli_open *x = a;
    const struct cli_open *y = b;

    if (rank(x) != rank(y)) {
        return rank(x) - rank(y);
    }
    if (x->record.status == IDEM_STATUS_COMPLETED) {
        return (x->record.ended_ms < y->record.ended_ms) -
               (x->record.ended_ms > y->record.ended_ms);
    }
    return (x->record.started_ms > y->record.started_ms) -
           (x->record.started_ms < y->record.started_ms);
}

static bool add(struct cli_look *look, int code, const struct idem_record *r)
{
    struct cli_open *open = make_room(look);

    if (open == NULL || !cli_open_init(open, code, r)) {
        look->failed = true;
        return false;
    }
    look->len++;
    return true;
}

static void count(struct cli_look *look, int code, const struct idem_record *r)
{
    if (code != 0) {
        look->unreadable++;
    } else if (r->status == IDEM_STATUS_FAILED) {
        look->failed_len++;
    } else if (r->status == IDEM_STATUS_UNKNOWN) {
        look->unknown++;
        look->missing += r->by_lease;
    } else if (r->status == IDEM_STATUS_COMPLETED) {
        look->failed_outcomes++;
    } else {
        look->in_progress++;
        look->retry += r->retry;
        look->overdue += r->overdue;
        look->missing += r->overdue;
        if (look->oldest_ms == 0 || r->started_ms < look->oldest_ms) {
            look->oldest_ms = r->started_ms;
        }
    }
}

struct looking {
    struct cli_look *look;
    int64_t from_ms; /* What failed earlier is left out. */
};

static int see(void *ctx, int code, const struct idem_record *record)
{
    const struct looking *looking = ctx;

    if (cli_is_alert(record) ||
        (code == 0 && record->status == IDEM_STATUS_COMPLETED &&
         record->ended_ms < looking->from_ms)) {
        return 0;
    }
    count(looking->look, code, record);
    return !add(looking->look, code, record);
}

static int look(struct idem_store *store, const struct idem_slice *scope,
                struct idem_filter *filter, int64_t from_ms,
                struct cli_look *ret_look, struct idem_error *ret_error)
{
    struct looking looking = {ret_look, from_ms};
    int rc;

    memset(ret_look, 0, sizeof(*ret_look));
    filter->statuses = 1u << IDEM_STATUS_IN_PROGRESS |
                       1u << IDEM_STATUS_FAILED | 1u << IDEM_STATUS_UNKNOWN;
    if (scope != NULL) {
        filter->any_scope = false;
        filter->scope = *scope;
    }
    rc = idem_list(store, filter, see, &looking, &ret_look->now_ms, ret_error);
    if (rc == 0 && ret_look->failed) {
        rc = IDEM_ENOMEM;
        ret_error->code = rc;
        (void)snprintf(ret_error->text, sizeof(ret_error->text), "%s",
                       idem_error_text(rc));
    }
    if (rc != 0) {
        cli_look_finish(ret_look);
    }
    return rc;
}

int cli_look(struct idem_store *store, const struct idem_slice *scope,
             struct cli_look *ret_look, struct idem_error *ret_error)
{
    struct idem_filter filter = IDEM_FILTER_INIT;

    return look(store, scope, &filter, /* from_ms= */ 0, ret_look, ret_error);
}

int cli_look_outcomes(struct idem_store *store, const struct idem_slice *scope,
                      int64_t within_ms, struct cli_look *ret_look,
                      struct idem_error *ret_error)
{
    struct idem_filter filter = IDEM_FILTER_INIT;

    filter.failed_outcomes = true;
    return look(store, scope, &filter, cli_now_ms() - within_ms, ret_look,
                ret_error);
}

void cli_look_sort(struct cli_look *look,
                   int (*compare)(const void *a, const void *b))
{
    if (look->len > 0) {
        qsort(look->open, look->len, sizeof(look->open[0]), compare);
    }
}

void cli_look_finish(struct cli_look *look)
{
    size_t i;

    for (i = 0; i < look->len; i++) {
        cli_open_finish(&look->open[i]);
    }
    free(look->open);
    memset(look, 0, sizeof(*look));
}
