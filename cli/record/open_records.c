/* The open records of a store, read once. */
#include "record/open_records.h"

#include "process/host.h"
#include "record/record.h"

#include <idem/operator.h>
#include <stdlib.h>

/* Copies the bytes of @slice to @to, and makes it point there. Returns the end of them. */
static char *keep(char *to, struct idem_slice *slice)
{
    if (slice->len > 0) {
        memcpy(to, slice->base, slice->len);
    }
    slice->base = to;
    return to + slice->len;
}

/* Copies the texts to one block. The scope is at its beginning, by which
 * cli_open_finish() frees it. */
static bool keep_texts(struct idem_record *copy)
{
    struct idem_slice *slices[] = {&copy->scope, &copy->key, &copy->owner,
                                   &copy->error, &copy->note};
    size_t len = 1;
    char *block;
    size_t i;

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

/* Describes @r, which was read if @code is 0. The slices still point to the texts of
 * @r. */
static struct cli_open describe(int code, const struct idem_record *r)
{
    struct cli_open open = {.unreadable = code != 0,
                            .exit_status = -1,
                            .http_status = -1};
    struct idem_record *copy = &open.record;

    if (code != 0) {
        copy->scope = r->scope;
        copy->key = r->key;
        memcpy(copy->id, r->id, sizeof(copy->id));
        return open;
    }
    *copy = *r;
    copy->fingerprint = copy->input = copy->unknown_fields = idem_str(NULL);
    copy->traceparent = idem_str(NULL);
    memset(&copy->result, 0, sizeof(copy->result));
    copy->history_len = 0;
    open.exit_status = cli_outcome_exit(r);
    open.http_status = cli_outcome_http(r);
    return open;
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

/* ---- What is kept ---- */

static void sort(struct cli_snapshot_class *class,
                 const struct cli_snapshot_keep *keep)
{
    if (class->len > 0) {
        qsort(class->open, class->len, sizeof(class->open[0]), keep->compare);
    }
    while (class->len > keep->max) {
        cli_open_finish(&class->open[--class->len]);
    }
    class->is_cut = class->len == keep->max;
}

/* Makes room for up to twice as many as are kept, so that it seldom has to sort. */
static bool make_room(struct cli_snapshot_class *class,
                      const struct cli_snapshot_keep *keep)
{
    size_t room = class->room == 0 ? 64 : 2 * class->room;
    struct cli_open *more;

    if (class->len >= 2 * keep->max) {
        sort(class, keep);
    }
    if (class->len < class->room) {
        return true;
    }
    more = reallocarray(class->open, room, sizeof(*more));
    if (more == NULL) {
        return false;
    }
    class->open = more;
    class->room = room;
    return true;
}

/* Copies a record only if it is kept. */
static bool add(struct cli_snapshot *snapshot,
                const struct cli_snapshot_keep *keep, int code,
                const struct idem_record *r)
{
    struct cli_open seen = describe(code, r);
    struct cli_snapshot_class *class;
    int which = keep->class_of(keep->ctx, &seen);

    if (which < 0) {
        return true;
    }
    class = &snapshot->classes[which];
    class->found++;
    if (keep->max == 0 ||
        (class->is_cut &&
         keep->compare(&seen, &class->open[keep->max - 1]) >= 0)) {
        return true;
    }
    if (!make_room(class, keep) || !keep_texts(&seen.record)) {
        return false;
    }
    class->open[class->len++] = seen;
    return true;
}

/* ---- What is counted ---- */

static void note_oldest(int64_t *oldest_ms, int64_t ms)
{
    if (*oldest_ms == 0 || ms < *oldest_ms) {
        *oldest_ms = ms;
    }
}

static void count(struct cli_snapshot *snapshot, int code,
                  const struct idem_record *r)
{
    if (code != 0) {
        snapshot->unreadable++;
    } else if (r->status == IDEM_STATUS_FAILED) {
        snapshot->failed_len++;
    } else if (r->status == IDEM_STATUS_UNKNOWN) {
        snapshot->unknown++;
    } else if (r->status == IDEM_STATUS_COMPLETED) {
        snapshot->failed_outcomes++;
    } else if (r->retry) {
        snapshot->retry++;
        snapshot->overdue += r->overdue;
        snapshot->retry_attempts = r->attempts > snapshot->retry_attempts
                                       ? r->attempts
                                       : snapshot->retry_attempts;
        note_oldest(&snapshot->oldest_retry_ms, r->ended_ms);
    } else {
        snapshot->in_progress++;
        snapshot->overdue += r->overdue;
        note_oldest(&snapshot->oldest_ms, r->started_ms);
    }
}

struct taking {
    struct cli_snapshot *snapshot;
    const struct cli_snapshot_keep *keep; /* NULL: nothing is kept. */
    int64_t from_ms;                      /* Earlier failures are left out. */
};

static int see(void *ctx, int code, const struct idem_record *record)
{
    const struct taking *taking = ctx;

    if (cli_is_alert(record) ||
        (code == 0 && record->status == IDEM_STATUS_COMPLETED &&
         record->ended_ms < taking->from_ms)) {
        return 0;
    }
    count(taking->snapshot, code, record);
    if (taking->keep != NULL &&
        !add(taking->snapshot, taking->keep, code, record)) {
        taking->snapshot->failed = true;
        return 1;
    }
    return 0;
}

static int take(struct idem_store *store, const struct idem_slice *scope,
                struct idem_filter *filter, struct taking *taking,
                struct idem_error *ret_error)
{
    struct cli_snapshot *ret_snapshot = taking->snapshot;
    size_t i;
    int rc;

    memset(ret_snapshot, 0, sizeof(*ret_snapshot));
    filter->statuses = 1u << IDEM_STATUS_IN_PROGRESS |
                       1u << IDEM_STATUS_FAILED | 1u << IDEM_STATUS_UNKNOWN;
    if (scope != NULL) {
        filter->any_scope = false;
        filter->scope = *scope;
    }
    rc =
        idem_list(store, filter, see, taking, &ret_snapshot->now_ms, ret_error);
    if (rc == 0 && ret_snapshot->failed) {
        rc = IDEM_ENOMEM;
        ret_error->code = rc;
        (void)snprintf(ret_error->text, sizeof(ret_error->text), "%s",
                       idem_error_text(rc));
    }
    for (i = 0; rc == 0 && taking->keep != NULL && i < CLI_SNAPSHOT_CLASSES;
         i++) {
        sort(&ret_snapshot->classes[i], taking->keep);
    }
    if (rc != 0) {
        cli_snapshot_finish(ret_snapshot);
    }
    return rc;
}

int cli_snapshot_take(struct idem_store *store, const struct idem_slice *scope,
                      const struct cli_snapshot_keep *keep,
                      struct cli_snapshot *ret_snapshot,
                      struct idem_error *ret_error)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct taking taking = {ret_snapshot, keep, /* from_ms= */ 0};

    return take(store, scope, &filter, &taking, ret_error);
}

int cli_snapshot_outcomes(struct idem_store *store,
                          const struct idem_slice *scope, int64_t within_ms,
                          const struct cli_snapshot_keep *keep,
                          struct cli_snapshot *ret_snapshot,
                          struct idem_error *ret_error)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct taking taking = {ret_snapshot, keep, cli_now_ms() - within_ms};

    filter.failed_outcomes = true;
    return take(store, scope, &filter, &taking, ret_error);
}

uint64_t cli_snapshot_open(const struct cli_snapshot *snapshot)
{
    return snapshot->in_progress + snapshot->retry + snapshot->failed_len +
           snapshot->unknown + snapshot->unreadable;
}

void cli_snapshot_finish(struct cli_snapshot *snapshot)
{
    size_t i;
    size_t n;

    for (i = 0; i < CLI_SNAPSHOT_CLASSES; i++) {
        struct cli_snapshot_class *class = &snapshot->classes[i];

        for (n = 0; n < class->len; n++) {
            cli_open_finish(&class->open[n]);
        }
        free(class->open);
    }
    memset(snapshot, 0, sizeof(*snapshot));
}
