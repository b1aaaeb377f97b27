/* The page of one record: the facts, and its history. */
#include "record/record.h"
#include "text/text.h"
#include "ui/page.h"

/* ---- What is known ---- */

enum {
    INPUT_SHOWN = 8192
};

static void fact(FILE *f, const char *text, struct idem_slice value)
{
    if (value.len > 0) {
        html_print(f, "<dt>%s</dt><dd>%t</dd>\n", text, value);
    }
}

static void number(FILE *f, const char *text, uint64_t value)
{
    html_print(f, "<dt>%s</dt><dd>%u</dd>\n", text, value);
}

static void outcome_fact(FILE *f, const struct idem_record *r)
{
    int exit_status = cli_outcome_exit(r);
    int http_status = cli_outcome_http(r);

    if (exit_status >= 0) {
        number(f, "Exit status", (uint64_t)exit_status);
    } else if (http_status >= 0) {
        number(f, "HTTP status", (uint64_t)http_status);
    }
    if (r->result_len > 0 || r->status == IDEM_STATUS_COMPLETED) {
        number(f, "Bytes of the result", r->result_len);
    }
}

/* "renewed 3 seconds ago, 57 seconds left, owner ann@host". */
static void live(FILE *f, const struct idem_record *r, int64_t now_ms)
{
    int64_t renewed_ms = r->lease_end_ms - r->lease_ms;
    char words[CLI_WORDS_MAX];

    cli_span_words(r->lease_end_ms - now_ms, words);
    html_print(f,
               "<p class=\"live\"><strong>At work</strong>: its lease was "
               "renewed %T, %s left, owner <b>%t</b>.</p>\n",
               renewed_ms < now_ms ? renewed_ms : now_ms, now_ms, words,
               r->owner.len > 0 ? r->owner : idem_str("not named"));
}

/* The request, on which a decision depends. */
static void input(FILE *f, struct idem_slice bytes)
{
    size_t max = bytes.len < INPUT_SHOWN ? bytes.len : INPUT_SHOWN;
    const char *rest;
    const char *end;

    if (max == 0) {
        return; /* Its base may be NULL. */
    }
    rest = bytes.base;
    end = rest + max;
    html_print(f, "<details><summary>Input, %u bytes</summary><pre>",
               (uint64_t)bytes.len);
    while (rest < end) {
        const char *line = memchr(rest, '\n', (size_t)(end - rest));
        const char *stop = line != NULL ? line : end;

        html_print(f, "%t%s", idem_bytes(rest, (size_t)(stop - rest)),
                   line != NULL ? "\n" : "");
        rest = stop + (line != NULL);
    }
    html_print(f, "</pre>%s</details>\n",
               max < bytes.len
                   ? "<p>The rest: <code>idem show --input</code></p>"
                   : "");
}

static void facts(FILE *f, const struct idem_record *r)
{
    html_print(f, "<h2>What is known</h2>\n<dl class=\"facts\">\n"
                  "<dt>Status</dt><dd>");
    html_status(f, r, r->overdue);
    html_print(f, "%s</dd>\n", r->retry ? " the next caller runs it" : "");
    fact(f, "Scope", r->scope);
    fact(f, "Owner", r->owner);
    outcome_fact(f, r);
    fact(f, "Error", r->error);
    fact(f, "Note", r->note);
    number(f, "Tries", r->attempts);
    number(f, "Fence", r->fence);
    fact(f, "When a lease ends without a word",
         idem_str(r->on_expired_lease == IDEM_RERUN
                      ? "the next caller runs it again"
                      : "it is unknown, and waits for a person"));
    html_print(f, "<dt>Id</dt><dd><code>%x</code></dd>\n</dl>\n",
               idem_bytes(r->id, sizeof(r->id)));
    input(f, r->input);
}

/* ---- The history ---- */

/* The events, past and to come. */
struct event {
    int64_t ms;
    const char *paint;
    const char *what;
    struct idem_slice who;
};

struct timeline {
    struct event events[4 * IDEM_HISTORY_MAX + 8];
    size_t len;
};

/* Adds an event in the order of time. Events of the same moment stay in the order of the
 * calls. */
static void tell(struct timeline *timeline, int64_t ms, const char *paint,
                 const char *what, struct idem_slice who)
{
    size_t i = timeline->len;

    if (ms == 0) {
        return;
    }
    while (i > 0 && timeline->events[i - 1].ms > ms) {
        timeline->events[i] = timeline->events[i - 1];
        i--;
    }
    timeline->events[i] = (struct event){ms, paint, what, who};
    timeline->len++;
}

/* True if a person's decision ended an attempt at @ms: the decision is an event already. */
static bool was_decided(const struct idem_record *r, int64_t ms)
{
    size_t i;

    for (i = 0; i < r->history_len; i++) {
        if (r->history[i].end == IDEM_PAST_RESOLVED &&
            r->history[i].ended_ms == ms) {
            return true;
        }
    }
    return false;
}

/* The outcome that a person's decision replaced. */
static void tell_replaced(struct timeline *timeline, const struct idem_past *p)
{
    if (p->was != IDEM_STATUS_IN_PROGRESS) {
        tell(timeline, p->ended_ms, "", "On record until then as",
             idem_str(idem_status_name(p->was)));
    }
    if (p->meta.len > 0) {
        tell(timeline, p->ended_ms, "", "It ended with", p->meta);
    }
    if (p->text.len > 0) {
        tell(timeline, p->ended_ms, "", "It said", p->text);
    }
}

static void tell_reopened(struct timeline *timeline,
                          const struct idem_record *r,
                          const struct idem_past *p)
{
    static const struct idem_slice nobody;

    if (p->started_ms != r->started_ms) { /* Else tell_present() adds it. */
        tell(timeline, p->started_ms, "", "Started", nobody);
    }
    tell_replaced(timeline, p);
    tell(timeline, p->ended_ms, "warn", "A person reopened it", p->owner);
}

static void tell_past(struct timeline *timeline, const struct idem_record *r,
                      const struct idem_past *p)
{
    static const struct idem_slice nobody;

    if (p->end == IDEM_PAST_RESOLVED) {
        tell_replaced(timeline, p);
        tell(timeline, p->ended_ms, "good", "A person decided", p->owner);
        return;
    }
    if (p->end == IDEM_PAST_REOPENED) {
        tell_reopened(timeline, r, p);
        return;
    }
    tell(timeline, p->started_ms, "", "Started", p->owner);
    if (p->end == IDEM_PAST_RETRIED) {
        tell(timeline, p->ended_ms, "warn", "Ended, to be run again", nobody);
    } else if (p->end == IDEM_PAST_TAKEN_OVER) {
        tell(timeline, p->ended_ms, "warn",
             "Stopped without an outcome, taken over", nobody);
    } else if (!was_decided(r, p->ended_ms)) {
        tell(timeline, p->ended_ms, "", "Released", nobody);
    }
}

static void tell_end(struct timeline *timeline, const struct idem_record *r)
{
    const char *paint = "bad";

    if (r->status == IDEM_STATUS_COMPLETED) {
        paint = cli_outcome_failed(r) ? "warn" : "good";
    } else if (r->status == IDEM_STATUS_RELEASED) {
        paint = "";
    }
    tell(timeline, r->ended_ms, paint, "On record as",
         idem_str(idem_status_name(r->status)));
}

/* If a person reopened the record, the history has that already. */
static void tell_retry(struct timeline *timeline, const struct idem_record *r)
{
    static const struct idem_slice nobody;

    if (r->history_len == 0 || r->history[0].end != IDEM_PAST_REOPENED ||
        r->history[0].ended_ms != r->ended_ms) {
        tell(timeline, r->ended_ms, "warn", "Ended, to be run again", nobody);
    }
}

static void tell_present(struct timeline *timeline, const struct idem_record *r,
                         int64_t now_ms)
{
    static const struct idem_slice nobody;
    bool open = r->status == IDEM_STATUS_IN_PROGRESS && !r->retry;

    tell(timeline, r->started_ms, "", "Started", r->owner);
    if (r->retry) {
        tell_retry(timeline, r);
        return;
    }
    tell(timeline, r->expected_ms, open && r->expected_ms < now_ms ? "bad" : "",
         "Expected to end by", nobody);
    if (open) {
        tell(timeline, cli_lease_end_ms(r),
             r->lease_end_ms < now_ms ? "bad" : "", "Its lease ends", nobody);
    } else {
        tell_end(timeline, r);
    }
}

static void print_event(FILE *f, const struct event *event, int64_t now_ms)
{
    html_print(f, "<li class=\"%s\"><span>%s%s%t</span><br>", event->paint,
               event->what, event->who.len > 0 ? ": " : "", event->who);
    html_full_time(f, event->ms, now_ms);
    html_print(f, "</li>\n");
}

static void print_timeline(FILE *f, const struct idem_record *r, int64_t now_ms)
{
    static const struct idem_slice nobody;
    struct timeline timeline = {.len = 0};
    size_t i;

    tell(&timeline, r->created_ms, "", "First asked for", nobody);
    for (i = r->history_len; i > 0; i--) {
        tell_past(&timeline, r, &r->history[i - 1]);
    }
    tell_present(&timeline, r, now_ms);
    html_print(f, "<h2>History</h2>\n<ol class=\"history\">\n");
    for (i = 0; i < timeline.len; i++) {
        print_event(f, &timeline.events[i], now_ms);
    }
    html_print(f, "%s</ol>\n",
               r->retry  ? "<li class=\"warn\">The next caller runs it.</li>\n"
               : r->live ? "<li class=\"info\">It is at work.</li>\n"
               : r->status == IDEM_STATUS_IN_PROGRESS
                   ? "<li class=\"warn\">It has not ended.</li>\n"
                   : "");
}

void page_record(FILE *f, const struct idem_record *record,
                 const struct page_form *form)
{
    html_begin_key(f, record->key);
    if (form->said != NULL) {
        html_print(f, "<p class=\"said%s\" role=\"%s\">%v</p>\n",
                   form->bad ? " bad" : "", form->bad ? "alert" : "status",
                   idem_str(form->said));
    }
    if (record->live) {
        live(f, record, form->now_ms);
    }
    facts(f, record);
    print_timeline(f, record, form->now_ms);
    page_forms(f, record, form);
    html_end(f);
}
