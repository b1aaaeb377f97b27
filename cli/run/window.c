/* --every: the key of a calendar window.
 *
 * What was begun in the window before and is not done is not forgotten: its key is
 * known, and one look shows its record. The rest is as with any key: what runs is
 * waited for or refused, what may run again is run first, under its own key, and what a
 * person must look at stops the run. */
#include "run/window.h"

#include "options/command.h"
#include "process/host.h"
#include "run/commands.h"
#include "run/status_report.h"
#include "text/error.h"

#include <assert.h>
#include <string.h>

int windows_take(const struct windows *windows, struct run *run,
                 const struct cli_window *window)
{
    struct cli_key_text *key = &run->asked.key;
    size_t len = strlen(window->name);

    if (windows->key_len + 1 + len > IDEM_KEY_MAX) {
        return cli_usage(
            &cli_run, "--every: with \"@%s\" the key is longer than %d bytes",
            window->name, IDEM_KEY_MAX);
    }
    key->len = windows->key_len + 1 + len;
    key->bytes[windows->key_len] = '@';
    memcpy(key->bytes + windows->key_len + 1, window->name, len + 1);
    run->asked.request.key = idem_bytes(key->bytes, key->len);
    return 0;
}

/* It follows the last "@" of the key, for a name has none. */
struct idem_slice windows_name_of(const struct run *run)
{
    struct idem_slice key = run->asked.request.key;
    const char *end = (const char *)key.base + key.len;
    const char *at;

    if (run->options->every == NULL) {
        return idem_str(NULL);
    }
    at = memrchr(key.base, '@', key.len);
    assert(at != NULL);
    return idem_bytes(at + 1, (size_t)(end - (at + 1)));
}

/* The look from the window after must still find the record, and so must a watch
 * that waits a little longer than a window for the next success: at the end of the
 * window a record that ends with the next one has a window's time left, and no more. */
static int64_t keep_until(const struct cli_period *period,
                          const struct cli_window *window)
{
    struct cli_window next;

    cli_window_at(period, window->end_ms, &next);
    cli_window_at(period, next.end_ms, &next);
    return next.end_ms;
}

int windows_choose(struct windows *ret_windows, struct run *run,
                   const struct cli_command *command)
{
    struct windows *w = ret_windows;
    struct idem_request *request = &run->asked.request;
    int64_t now_ms = cli_now_ms();
    struct cli_period period;
    int64_t keep_ms;
    int status = cli_period_init(&period, command, "every", run->options->every,
                                 run->options->zone);

    if (status != 0) {
        return status;
    }
    memset(w, 0, sizeof(*w));
    w->key_len = request->key.len;
    cli_window_at(&period, now_ms, &w->current);
    cli_window_at(&period, w->current.start_ms - 1, &w->before);
    keep_ms = keep_until(&period, &w->current) - now_ms;
    if (request->retention_ms < keep_ms) {
        request->retention_ms = keep_ms;
    }
    return windows_take(w, run, &w->current);
}

static bool is_left(const struct idem_record *record)
{
    switch (idem_record_status(record)) {
    case IDEM_STATUS_IN_PROGRESS:
    case IDEM_STATUS_RETRY:
    case IDEM_STATUS_UNKNOWN:
        return true;
    case IDEM_STATUS_COMPLETED:
    case IDEM_STATUS_FAILED:
    case IDEM_STATUS_RELEASED:
        break;
    }
    return false;
}

int windows_look_back(const struct windows *windows, struct run *run,
                      bool *ret_left)
{
    const struct idem_request *asked = &run->asked.request;
    struct idem_error error = {0};
    struct idem_answer *answer;
    int status = windows_take(windows, run, &windows->before);

    *ret_left = false;
    if (status != 0) {
        return status;
    }
    error.code =
        idem_get(run->store, asked->scope, asked->key, &answer, &error);
    if (error.code == 0) {
        *ret_left = is_left(idem_answer_record(answer));
        idem_answer_destroy(answer);
    } else if (error.code != IDEM_ENOTFOUND) {
        status_report_set_error(&run->report, error.text);
        return cli_fail_before("nothing was run", &error);
    }
    return *ret_left ? 0 : windows_take(windows, run, &windows->current);
}
