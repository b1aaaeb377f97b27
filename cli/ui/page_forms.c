/* The forms of a record: a decision about it, and to let it be run again. */
#include "record/record.h"
#include "record/remedy.h"
#include "text/text.h"
#include "ui/html.h"
#include "ui/page.h"

/* As idem_resolve() takes it; by force also while a lease runs. */
static bool may_decide(const struct idem_record *r)
{
    return r->status == IDEM_STATUS_FAILED ||
           r->status == IDEM_STATUS_UNKNOWN ||
           r->status == IDEM_STATUS_IN_PROGRESS || cli_is_decided(r);
}

/* As idem_reopen() takes it. */
static bool may_reopen(const struct idem_record *r)
{
    return !cli_is_reopened(r) && r->status != IDEM_STATUS_RELEASED && !r->live;
}

static void hidden(FILE *f, const char *name, struct idem_slice s)
{
    (void)fprintf(f, "<input type=\"hidden\" name=\"%s\" value=\"", name);
    html_hex(f, s);
    (void)fputs("\">\n", f);
}

/* Which attempt it is about. */
static void begin_form(FILE *f, const char *action, const struct idem_record *r)
{
    (void)fprintf(f, "<form action=\"%s\" method=\"post\" class=\"box\">\n",
                  action);
    hidden(f, "s", r->scope);
    hidden(f, "k", r->key);
    (void)fprintf(f, "<input type=\"hidden\" name=\"fence\" value=\"%llu\">\n",
                  (unsigned long long)r->fence);
}

static void choice(FILE *f, const struct page_form *form, const char *value,
                   const char *text)
{
    bool chosen = form->decision != NULL && strcmp(form->decision, value) == 0;

    (void)fprintf(f,
                  "<label class=\"line\"><input type=\"radio\" "
                  "name=\"decision\" value=\"%s\" required%s> %s</label>\n",
                  value, chosen ? " checked" : "", text);
}

static void text_field(FILE *f, const char *name, const char *label,
                       struct idem_slice typed)
{
    (void)fprintf(f,
                  "<label for=\"%s\">%s</label>\n"
                  "<input type=\"text\" id=\"%s\" name=\"%s\" "
                  "maxlength=\"255\" autocomplete=\"off\" value=\"",
                  name, label, name, name);
    html_value(f, typed);
    (void)fputs("\">\n", f);
}

/* @id tells the two fields of a page apart. */
static void reason_field(FILE *f, const struct page_form *form, const char *id,
                         const char *label, struct idem_slice typed)
{
    (void)fprintf(f,
                  "<label for=\"%s\">%s</label>\n"
                  "<input type=\"text\" id=\"%s\" name=\"reason\" "
                  "maxlength=\"1000\" required autocomplete=\"off\" "
                  "aria-describedby=\"%s-who\" value=\"",
                  id, label, id, id);
    html_value(f, typed);
    (void)fprintf(f,
                  "\">\n<p class=\"soft\" id=\"%s-who\">It is recorded, as "
                  "said by ",
                  id);
    html_text(f, idem_str(form->who));
    (void)fputs(".</p>\n", f);
}

/* A person who ticks this has read what is overridden. */
static void force_field(FILE *f, const struct idem_record *r, int64_t now_ms)
{
    char words[CLI_WORDS_MAX];

    cli_span_words(r->lease_end_ms - now_ms, words);
    (void)
        fputs("<label class=\"line force\"><input type=\"checkbox\" "
              "name=\"force\" value=\"yes\" required> <span>Override the lease "
              "of <b>",
              f);
    html_text(f, r->owner.len > 0 ? r->owner : idem_str("its owner"));
    (void)fprintf(f,
                  "</b>, which has %s left. It may be at work, and may go on "
                  "beside whoever starts next, until its next renewal.</span>"
                  "</label>\n",
                  words);
}

static void decide_form(FILE *f, const struct idem_record *r,
                        const struct page_form *form)
{
    bool live = r->live;

    (void)fputs(
        live
            ? "<section class=\"act\"><h2>Decide although it is at work</h2>\n<p>Decisions are "
              "refused while its lease runs: wait for its end, unless "
              "you know that the owner is gone.</p>\n"
        : cli_is_decided(r) && !r->retry
            ? "<section class=\"act\"><h2>Correct the decision</h2>\n<p>A person "
              "decided so, and nobody has started since.</p>\n"
            : "<section class=\"act\"><h2>Decide how it ended</h2>\n<p>Find out first what "
              "really happened: in the logs of its owner, or where it "
              "had its effect.</p>\n",
        f);
    begin_form(f, "resolve", r);
    (void)fputs("<fieldset><legend>How did it end?</legend>\n", f);
    choice(f, form, "complete", "It was done: later callers get the result.");
    choice(f, form, "release",
           "It did not happen: the next caller runs it, and is not told of "
           "this attempt.");
    choice(
        f, form, "fail",
        "It failed for good: later callers are told so, and nobody runs it.");
    (void)
        fputs("</fieldset>\n<label for=\"result\">If it was done: the result, "
              "for all who ask</label>\n"
              "<textarea id=\"result\" name=\"result\" rows=\"2\" "
              "maxlength=\"4000\" spellcheck=\"false\">\n",
              f);
    html_value(f, form->result);
    (void)fputs("</textarea>\n", f);
    if (cli_is_http(r)) {
        text_field(f, "http", "Its HTTP status, from 200 to 599", form->http);
        text_field(f, "type", "Its content type", form->type);
    }
    reason_field(f, form, "why", "How do you know?", form->reason);
    if (live) {
        force_field(f, r, form->now_ms);
    }
    (void)fputs("<button class=\"main\">Decide</button>\n</form></section>\n",
                f);
}

static void reopen_form(FILE *f, const struct idem_record *r,
                        const struct page_form *form)
{
    static const struct idem_slice nothing;
    bool sent = form->decision != NULL && strcmp(form->decision, "reopen") == 0;

    (void)fprintf(f,
                  "<section class=\"act\"><h2>Run it again</h2>\n<p>Mend the "
                  "cause first. The next caller starts the work, and is told "
                  "that it takes over: the work may have had effects. The "
                  "result on record is dropped; %s.</p>\n",
                  form->audited ? "the audit log keeps it"
                                : "the audit log does not keep it either");
    begin_form(f, "reopen", r);
    (void)fputs("<input type=\"hidden\" name=\"decision\" value=\"reopen\">\n",
                f);
    reason_field(f, form, "why-again", "Why is it to be run again?",
                 sent ? form->reason : nothing);
    (void)fputs("<button>Reopen</button>\n</form></section>\n", f);
}

void page_forms(FILE *f, const struct idem_record *record,
                const struct page_form *form)
{
    if (may_decide(record)) {
        decide_form(f, record, form);
    }
    if (may_reopen(record)) {
        reopen_form(f, record, form);
    }
}
