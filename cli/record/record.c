/* Reads records, and keeps the names of many in an unnamed file. */
#include "record/record.h"

#include "process/host.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/screen.h"
#include "text/text.h"

#include <errno.h>
#include <idem/operator.h>
#include <stdlib.h>

/* ---- Names of records in a file ---- */

int cli_names_open(struct cli_names *names)
{
    names->len = 0;
    names->f = tmpfile();
    if (names->f == NULL) {
        cli_say("cannot create a temporary file: %s", strerror(errno));
        return CLI_OUTPUT_FAILED;
    }
    return 0;
}

void cli_names_close(struct cli_names *names)
{
    if (names->f != NULL) {
        (void)fclose(names->f);
        names->f = NULL;
    }
}

/* Written before the texts of each. */
struct head {
    uint64_t bytes;
    uint64_t fence;
    uint16_t owner_len;
    uint8_t scope_len;
    uint8_t key_len;
    uint8_t status;
    bool retry;
};

bool cli_names_add(struct cli_names *names, const struct idem_record *record)
{
    struct head head;

    memset(&head, 0, sizeof(head));
    head.bytes = record->result_len + record->input_len;
    head.fence = record->fence;
    head.owner_len =
        record->owner.len <= IDEM_OWNER_MAX ? (uint16_t)record->owner.len : 0;
    head.scope_len = (uint8_t)record->scope.len;
    head.key_len = (uint8_t)record->key.len;
    head.status = (uint8_t)record->status;
    head.retry = record->retry;
    (void)fwrite(&head, sizeof(head), 1, names->f);
    (void)fwrite(record->scope.base, 1, record->scope.len, names->f);
    (void)fwrite(record->key.base, 1, record->key.len, names->f);
    (void)fwrite(record->owner.base, 1, head.owner_len, names->f);
    names->len++;
    return ferror(names->f) == 0;
}

int cli_names_rewind(struct cli_names *names)
{
    if (fflush(names->f) != 0 || ferror(names->f)) {
        cli_say("cannot note the keys in a temporary file: %s",
                strerror(errno));
        return CLI_OUTPUT_FAILED;
    }
    rewind(names->f);
    return 0;
}

static bool next_text(struct cli_names *names, char *to, size_t len,
                      struct idem_slice *ret_text)
{
    *ret_text = idem_bytes(to, len);
    return fread(to, 1, len, names->f) == len;
}

bool cli_names_next(struct cli_names *names, struct cli_name *ret_name)
{
    char *key = ret_name->text + UINT8_MAX;
    struct head head;

    if (fread(&head, sizeof(head), 1, names->f) != 1 ||
        !next_text(names, ret_name->text, head.scope_len, &ret_name->scope) ||
        !next_text(names, key, head.key_len, &ret_name->key) ||
        !next_text(names, key + UINT8_MAX, head.owner_len, &ret_name->owner)) {
        return false;
    }
    ret_name->bytes = head.bytes;
    ret_name->fence = head.fence;
    ret_name->status = (enum idem_status)head.status;
    ret_name->retry = head.retry;
    return true;
}

#define ELSEWHERE_MAX 2000 /* Records. */

/* Names the default store if the user named none: that of a cron job, for example, may be
 * another. */
static void say_usual_store(void)
{
    const char *given = secure_getenv("IDEM_STORE");
    char *url;

    if ((given == NULL || *given == '\0') &&
        cli_store_url(NULL, /* make= */ false, &url) == 0) {
        cli_say("this is the store %s; another is named by --store or "
                "IDEM_STORE",
                url);
        free(url);
    }
}

/* When the lease of a dead owner is ended, its end is written so far back that every host
 * finds the lease over, which may be before the attempt began (idem__lease_end()). A
 * lease that still runs is shown as it is: its owner's clock may be far ahead. */
int64_t cli_lease_end_ms(const struct idem_record *record)
{
    int64_t end_ms = record->lease_end_ms;

    return end_ms > cli_now_ms() || end_ms > record->started_ms
               ? end_ms
               : record->started_ms;
}

/* A search for the same key in other scopes, for which no store has an index. */
struct elsewhere {
    struct idem_slice key;
    bool found;
};

static int see_elsewhere(void *ctx, int code, const struct idem_record *r)
{
    struct elsewhere *elsewhere = ctx;
    char scope[4 * IDEM_SCOPE_MAX + 1];

    (void)code;
    if (r->key.len == elsewhere->key.len &&
        memcmp(r->key.base, elsewhere->key.base, r->key.len) == 0) {
        cli_say("the scope \"%s\" has this key: name it with --scope",
                cli_escape(r->scope, scope, sizeof(scope)));
        elsewhere->found = true;
    }
    return elsewhere->found;
}

/* Looks only at ELSEWHERE_MAX records, so that it takes a short time: at the newest of a
 * file, and at any of a table. */
static bool is_elsewhere(struct idem_store *store, struct idem_slice key)
{
    struct elsewhere elsewhere = {.key = key};
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_page page = IDEM_PAGE_INIT;

    filter.newest_first = true;
    page.look_max = ELSEWHERE_MAX;
    (void)idem_list_page(store, &filter, see_elsewhere, &elsewhere, &page,
                         /* ret_error= */ NULL);
    return elsewhere.found;
}

int cli_get(struct idem_store *store, const char *store_url,
            struct idem_slice scope, struct idem_slice key,
            struct idem_answer **ret_answer)
{
    struct idem_error error = {0};
    char shown[128];

    error.code = idem_get(store, scope, key, ret_answer, &error);
    if (error.code == IDEM_ENOTFOUND) {
        cli_say("no record for \"%s\"%s; see: idem list",
                cli_escape(key, shown, sizeof(shown)),
                scope.len > 0 ? " in this scope" : "");
        if (!is_elsewhere(store, key) && store_url == NULL) {
            say_usual_store();
        }
        return CLI_NO_RECORD;
    }
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

bool cli_is_decided(const struct idem_record *record)
{
    return record->history_len > 0 &&
           (record->history[0].end == IDEM_PAST_RESOLVED ||
            record->history[0].end == IDEM_PAST_REOPENED) &&
           record->history[0].fence == record->fence;
}

bool cli_is_reopened(const struct idem_record *record)
{
    return record->retry && cli_is_decided(record) &&
           record->history[0].end == IDEM_PAST_REOPENED;
}

void cli_live_text(const struct idem_record *record, int64_t now_ms,
                   char buf[CLI_LIVE_MAX])
{
    int64_t renewed_ms = record->lease_end_ms - record->lease_ms;
    int64_t left_ms = record->lease_end_ms - now_ms;
    char owner[4 * IDEM_OWNER_MAX + 1] = "?";
    char ago[32];
    char left[32];

    cli_span_text(now_ms > renewed_ms ? now_ms - renewed_ms : 0, ago);
    cli_span_text(left_ms > 0 ? left_ms : 0, left);
    if (record->owner.len > 0) {
        (void)cli_escape(record->owner, owner, sizeof(owner));
    }
    (void)snprintf(buf, CLI_LIVE_MAX, "renewed %s ago, %s left, owner %s", ago,
                   left, owner);
}

/* Red means failed; magenta means that a person may have to look. Both can be read on
 * black and on white, which yellow and cyan cannot. */
static const char *cli_status_paint(const struct idem_record *record,
                                    bool overdue)
{
    if (record->status == IDEM_STATUS_FAILED) {
        return "\033[31m";
    }
    if (record->status == IDEM_STATUS_UNKNOWN || overdue) {
        return "\033[1;35m";
    }
    return NULL;
}

void cli_print_status(FILE *f, const struct idem_record *record, int width)
{
    const char *paint =
        cli_may_paint() ? cli_status_paint(record, record->overdue) : NULL;

    (void)fprintf(f, "%s%-*s%s", paint != NULL ? paint : "", width,
                  idem_status_name(idem_record_status(record)),
                  paint != NULL ? "\033[0m" : "");
}

const char *cli_past_end_name(enum idem_past_end end)
{
    switch (end) {
    case IDEM_PAST_RELEASED:
        return "released";
    case IDEM_PAST_TAKEN_OVER:
        return "taken_over";
    case IDEM_PAST_RESOLVED:
        return "resolved";
    case IDEM_PAST_RETRIED:
        return "retried";
    case IDEM_PAST_REOPENED:
        return "reopened";
    }
    return "unknown";
}

bool cli_is_output(const struct idem_form *form)
{
    struct idem_slice type = idem_str(IDEM_FORM_BYTES_TYPE);

    return form->framed ||
           (form->has_exit && form->content_type.len == type.len &&
            memcmp(form->content_type.base, type.base, type.len) == 0);
}

int cli_replay_status(const struct idem_record *record,
                      const struct idem_form *form)
{
    /* A failure without an exit status must not look like a success. */
    if (record->status == IDEM_STATUS_FAILED && !form->has_exit &&
        form->exit_status == 0) {
        return CLI_FAILED;
    }
    return form->exit_status;
}

static void write_streams(const struct idem_form *form)
{
    struct idem_slice rest = form->bytes;
    struct idem_slice piece;
    enum idem_stream stream;

    while (idem_form_next(form, &rest, &stream, &piece)) {
        FILE *f = stream == IDEM_STREAM_STDOUT ? stdout : stderr;

        (void)fwrite(piece.base, 1, piece.len, f);
        (void)fflush(f); /* Both may go to one place: keep the order. */
    }
}

void cli_outcome_text(const struct idem_record *record, char buf[64])
{
    struct idem_form form;

    idem_form_read(&record->result, &form);
    if (form.has_exit && form.exit_status > 0) {
        (void)snprintf(buf, 64, "it %s with status %d",
                       form.named ? "was done" : "failed", form.exit_status);
    } else if (form.http_status >= 400) {
        (void)snprintf(buf, 64, "it was answered with HTTP status %d",
                       form.http_status);
    } else {
        (void)strcpy(buf, record->status == IDEM_STATUS_FAILED ||
                                  form.kind == IDEM_FORM_ERROR
                              ? "it failed"
                              : "it was done");
    }
}

int cli_write_result(const struct idem_record *record)
{
    struct idem_form form;
    char outcome[64];
    char ended[48];

    idem_form_read(&record->result, &form);
    if (form.kind == IDEM_FORM_NOT_KEPT) {
        cli_outcome_text(record, outcome);
        cli_time_for(cli_stderr_is_tty(), record->ended_ms, ended);
        cli_say("%s at %s; its result was too long to be kept", outcome, ended);
        return 0;
    }
    /* Half of a damaged recording must not pass for the whole of it. */
    if (form.kind == IDEM_FORM_DAMAGED) {
        cli_say("the recorded result is damaged; none of it was written");
        return CLI_CORRUPT;
    }
    write_streams(&form);
    return 0;
}

int cli_meta_status(struct idem_slice meta)
{
    struct idem_result result = {.meta = meta};
    struct idem_form form;

    idem_form_read(&result, &form);
    return form.has_exit ? form.exit_status : -1;
}

bool cli_is_alert(const struct idem_record *record)
{
    static const char scope[] = CLI_ALERT_SCOPE;

    return record->scope.len == sizeof(scope) - 1 &&
           memcmp(record->scope.base, scope, sizeof(scope) - 1) == 0;
}
