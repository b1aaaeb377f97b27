/* One record: what is known of it, its story, and a decision. */
#include "ui/html.h"
#include "ui/page.h"

#include "record.h"

static void fact(FILE *f, const char *name, struct idem_slice value)
{
    if (value.len > 0) {
        (void)fprintf(f, "<tr><th>%s<td>", name);
        html_text(f, value);
        (void)fputs("</tr>\n", f);
    }
}

static void number(FILE *f, const char *name, uint64_t value)
{
    (void)fprintf(f, "<tr><th>%s<td>%llu</tr>\n", name,
                  (unsigned long long)value);
}

static void hex_fact(FILE *f, const char *name, const uint8_t *bytes,
                     size_t len)
{
    size_t i;

    (void)fprintf(f, "<tr><th>%s<td><code>", name);
    for (i = 0; i < len; i++) {
        (void)fprintf(f, "%02x", bytes[i]);
    }
    (void)fputs("</code></tr>\n", f);
}

static void facts(FILE *f, const struct idem_record *r)
{
    (void)fputs("<div class=\"scroll\"><table>\n", f);
    fact(f, "Scope", r->scope);
    (void)fprintf(f, "<tr><th>Status<td>%s%s</tr>\n",
                  idem_status_name(r->status),
                  cli_is_overdue(r) ? ", overdue" : "");
    fact(f, "Owner", r->owner);
    number(f, "Fence", r->fence);
    number(f, "Tries", r->attempts);
    fact(f, "When the lease ends",
         idem_str(r->on_expired_lease == IDEM_RERUN
                      ? "the next caller runs it again"
                      : "it is unknown, and waits for a person"));
    if (r->result_len > 0 || r->status == IDEM_STATUS_COMPLETED) {
        number(f, "Bytes of the result", r->result_len);
    }
    fact(f, "Error", r->error);
    fact(f, "Note", r->note);
    hex_fact(f, "Id", r->id, sizeof(r->id));
    (void)fputs("</table></div>\n", f);
}

/* ---- The story ---- */

/* What happened, or will. */
struct event {
    int64_t ms;
    const char *paint;
    const char *what;
    struct idem_slice who;
};

struct story {
    struct event events[2 * IDEM_HISTORY_MAX + 8];
    size_t len;
};

/* In the order of time; of the same moment, in the order they are told. */
static void tell(struct story *story, int64_t ms, const char *paint,
                 const char *what, struct idem_slice who)
{
    size_t i = story->len;

    if (ms == 0) {
        return;
    }
    while (i > 0 && story->events[i - 1].ms > ms) {
        story->events[i] = story->events[i - 1];
        i--;
    }
    story->events[i] = (struct event){ms, paint, what, who};
    story->len++;
}

/* A person who gives an attempt back decides, and that is told already. */
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

static void tell_past(struct story *story, const struct idem_record *r,
                      const struct idem_past *p)
{
    static const struct idem_slice nobody;

    if (p->end == IDEM_PAST_RESOLVED) {
        tell(story, p->ended_ms, "good", "A person decided", p->owner);
        return;
    }
    if (p->end == IDEM_PAST_REOPENED) {
        tell(story, p->ended_ms, "warn", "A person reopened it", p->owner);
        return;
    }
    tell(story, p->started_ms, "", "Started", p->owner);
    if (p->end == IDEM_PAST_RETRIED) {
        tell(story, p->ended_ms, "warn", "Ended, to be run again", nobody);
    } else if (p->end == IDEM_PAST_TAKEN_OVER) {
        tell(story, p->ended_ms, "warn", "Stopped without a word, taken over",
             nobody);
    } else if (!was_decided(r, p->ended_ms)) {
        tell(story, p->ended_ms, "", "Given back", nobody);
    }
}

static void tell_end(struct story *story, const struct idem_record *r)
{
    const char *paint = "bad";

    if (r->status == IDEM_STATUS_COMPLETED) {
        paint = "good";
    } else if (r->status == IDEM_STATUS_RELEASED) {
        paint = "";
    }
    tell(story, r->ended_ms, paint, "On record as",
         idem_str(idem_status_name(r->status)));
}

static void tell_present(struct story *story, const struct idem_record *r,
                         int64_t now_ms)
{
    static const struct idem_slice nobody;
    bool open = r->status == IDEM_STATUS_IN_PROGRESS;

    tell(story, r->started_ms, "", "Started", r->owner);
    tell(story, r->expected_ms, open && r->expected_ms < now_ms ? "bad" : "",
         "Expected to end by", nobody);
    if (open) {
        tell(story, r->lease_end_ms, r->lease_end_ms < now_ms ? "bad" : "",
             "Its lease ends", nobody);
    } else {
        tell_end(story, r);
    }
}

static void print_event(FILE *f, const struct event *event, int64_t now_ms)
{
    (void)fprintf(f, "<li class=\"%s\"><span>", event->paint);
    html_text(f, idem_str(event->what));
    if (event->who.len > 0) {
        (void)fputs(": ", f);
        html_text(f, event->who);
    }
    (void)fputs("</span><br>", f);
    html_time(f, event->ms, now_ms);
    (void)fputs("</li>\n", f);
}

static void print_story(FILE *f, const struct idem_record *r, int64_t now_ms)
{
    static const struct idem_slice nobody;
    struct story story = {.len = 0};
    size_t i;

    tell(&story, r->created_ms, "", "First asked for", nobody);
    for (i = r->history_len; i > 0; i--) {
        tell_past(&story, r, &r->history[i - 1]);
    }
    tell_present(&story, r, now_ms);
    (void)fputs("<h2>Its story</h2>\n<ol class=\"story\">\n", f);
    for (i = 0; i < story.len; i++) {
        print_event(f, &story.events[i], now_ms);
    }
    if (r->status == IDEM_STATUS_IN_PROGRESS) {
        (void)fputs("<li class=\"warn\">Nobody has said how it ended.</li>\n",
                    f);
    }
    (void)fputs("</ol>\n", f);
}

/* ---- The decision ---- */

static bool may_decide(const struct idem_record *r)
{
    return r->status == IDEM_STATUS_FAILED ||
           r->status == IDEM_STATUS_UNKNOWN || cli_is_overdue(r) ||
           (r->status == IDEM_STATUS_IN_PROGRESS &&
            r->lease_end_ms == IDEM_NEVER);
}

static void hidden_hex(FILE *f, const char *name, struct idem_slice s)
{
    const unsigned char *bytes = s.base;
    size_t i;

    (void)fprintf(f, "<input type=\"hidden\" name=\"%s\" value=\"", name);
    for (i = 0; i < s.len; i++) {
        (void)fprintf(f, "%02x", bytes[i]);
    }
    (void)fputs("\">\n", f);
}

static void choice(FILE *f, const char *value, const char *text)
{
    (void)fprintf(f,
                  "<label class=\"line\"><input type=\"radio\" "
                  "name=\"decision\" value=\"%s\" required>%s</label>\n",
                  value, text);
}

static void form(FILE *f, const struct idem_record *r, const char *seal)
{
    (void)fputs("<h2>When you know how it ended</h2>\n"
                "<p>Find out first what really happened: in the logs of its "
                "owner, or where it had its effect.</p>\n"
                "<form action=\"/resolve\" method=\"post\"><fieldset>\n",
                f);
    hidden_hex(f, "s", r->scope);
    hidden_hex(f, "k", r->key);
    (void)fprintf(f,
                  "<input type=\"hidden\" name=\"fence\" value=\"%llu\">\n"
                  "<input type=\"hidden\" name=\"seal\" value=\"%s\">\n",
                  (unsigned long long)r->fence, seal);
    choice(f, "complete", "It was done. Its result, for all who ask:");
    (void)fputs("<textarea name=\"result\" rows=\"2\" maxlength=\"4000\" "
                "aria-label=\"Result\"></textarea>\n",
                f);
    choice(f, "release", "It did not happen. Another may try.");
    choice(f, "fail", "It failed for good.");
    (void)fputs("<label>How do you know? It is recorded, with your name. "
                "<input type=\"text\" name=\"reason\" maxlength=\"1000\" "
                "required></label>\n<button>Decide</button>\n"
                "</fieldset></form>\n",
                f);
}

void page_record(FILE *f, const struct idem_record *record, int64_t now_ms,
                 const char *seal, const char *said, bool bad)
{
    html_begin(f, record->key);
    if (said != NULL) {
        (void)fprintf(f, "<p class=\"said%s\">", bad ? " bad" : "");
        html_text(f, idem_str(said));
        (void)fputs("</p>\n", f);
    }
    facts(f, record);
    print_story(f, record, now_ms);
    if (may_decide(record)) {
        form(f, record, seal);
    }
    html_end(f);
}
