/* Pages without a record: a sentence, an outage, and the login; and the forms of a
 * record. */
#include "record/record.h"
#include "record/verdict.h"
#include "text/text.h"
#include "ui/page.h"

/* ---- Pages without a record ---- */

static void alert(FILE *f, const char *text)
{
    html_print(f, "<p class=\"said bad\" role=\"alert\">%t</p>\n",
               idem_str(text));
}

void page_text(FILE *f, const char *title, const char *text)
{
    html_begin(f, title, /* inside= */ false);
    html_print(
        f, "<p>%t</p>\n<p><a href=\"./\">Back to the open records</a></p>\n",
        idem_str(text));
    html_end(f);
}

void page_outage(FILE *f, const char *reason, bool decided, bool in_doubt,
                 const char *back)
{
    const char *said =
        !decided ? ""
        : in_doubt
            ? "<p>Your decision may or may not be on record: look at the "
              "record when the store answers. You may send the same "
              "decision again.</p>\n"
            : "<p>Nothing was decided.</p>\n";

    html_begin(f, "The store does not answer", /* inside= */ false);
    alert(f, reason);
    html_print(
        f,
        "%s<h2>What to do</h2>\n<ol class=\"steps\">\n"
        "<li>Find the cause: <code>idem doctor</code>, on the host where "
        "<code>idem ui</code> runs, names it.</li>\n"
        "<li>Leave the work alone. While the store is away no new work starts, "
        "and work that ends is kept in the journal of its host.</li>\n"
        "<li>When the store answers again, run <code>idem reconcile</code> on "
        "each host that works: it records what the journals have. Then decide "
        "about what is still unknown.</li>\n</ol>\n"
        "<p><a class=\"button\" href=\"%v\">Try again</a></p>\n",
        said, idem_str(back));
    html_end(f);
}

void page_login(FILE *f, bool wrong)
{
    html_begin(f, "Who are you?", /* inside= */ false);
    if (wrong) {
        alert(f, "That is not the token.");
    }
    html_print(f,
               "<form action=\"/login\" method=\"post\" class=\"box\">\n"
               "<label for=\"token\">The token that <code>idem ui</code> "
               "printed</label>\n"
               "<input type=\"password\" id=\"token\" name=\"token\" autofocus "
               "required autocomplete=\"off\">\n"
               "<button>Enter</button></form>\n");
    html_end(f);
}

/* ---- Forms of a record ---- */

/* True for a record that idem_resolve() takes; with force also while a lease runs. */
static bool may_decide(const struct idem_record *r)
{
    return r->status == IDEM_STATUS_FAILED ||
           r->status == IDEM_STATUS_UNKNOWN ||
           r->status == IDEM_STATUS_IN_PROGRESS || cli_is_decided(r);
}

/* True for a record that idem_reopen() takes. */
static bool may_reopen(const struct idem_record *r)
{
    return !cli_is_reopened(r) && r->status != IDEM_STATUS_RELEASED && !r->live;
}

/* The form names the attempt that it is about. */
static void begin_form(FILE *f, const char *action, const struct idem_record *r)
{
    html_print(f,
               "<form action=\"%s\" method=\"post\" class=\"box\">\n"
               "<input type=\"hidden\" name=\"s\" value=\"%x\">\n"
               "<input type=\"hidden\" name=\"k\" value=\"%x\">\n"
               "<input type=\"hidden\" name=\"fence\" value=\"%u\">\n",
               action, r->scope, r->key, r->fence);
}

static void choice(FILE *f, const struct page_form *form, const char *value,
                   const char *text)
{
    bool chosen = form->decision != NULL && strcmp(form->decision, value) == 0;

    html_print(f,
               "<label class=\"line\"><input type=\"radio\" "
               "name=\"decision\" value=\"%s\" required%s> %s</label>\n",
               value, chosen ? " checked" : "", text);
}

static void text_field(FILE *f, const char *name, const char *label,
                       struct idem_slice typed)
{
    html_print(f,
               "<label for=\"%s\">%s</label>\n"
               "<input type=\"text\" id=\"%s\" name=\"%s\" "
               "maxlength=\"255\" autocomplete=\"off\" value=\"%v\">\n",
               name, label, name, name, typed);
}

/* @id tells the two fields of a page apart. */
static void reason_field(FILE *f, const struct page_form *form, const char *id,
                         const char *label, struct idem_slice typed)
{
    html_print(f,
               "<label for=\"%s\">%s</label>\n"
               "<input type=\"text\" id=\"%s\" name=\"reason\" "
               "maxlength=\"1000\" required autocomplete=\"off\" "
               "aria-describedby=\"%s-who\" value=\"%v\">\n"
               "<p class=\"soft\" id=\"%s-who\">It is recorded, as said by "
               "%t.</p>\n",
               id, label, id, id, typed, id, idem_str(form->who));
}

/* A person who ticks this has read whose lease it overrides. */
static void force_field(FILE *f, const struct idem_record *r, int64_t now_ms)
{
    char words[CLI_WORDS_MAX];

    cli_span_words(r->lease_end_ms - now_ms, words);
    html_print(
        f,
        "<label class=\"line force\"><input type=\"checkbox\" "
        "name=\"force\" value=\"yes\" required> <span>Override the lease "
        "of <b>%t</b>, which has %s left. It may be at work, and may go on "
        "beside the next owner until its next renewal.</span></label>\n",
        r->owner.len > 0 ? r->owner : idem_str("its owner"), words);
}

static void decide_form(FILE *f, const struct idem_record *r,
                        const struct page_form *form)
{
    bool live = r->live;

    html_print(
        f, "<section class=\"act\"><h2>%s</p>\n",
        live ? "Decide while it is at work</h2>\n<p>Decisions are refused "
               "while the owner's lease runs: wait until it ends, unless you "
               "know that the owner is gone."
        : cli_is_decided(r) && !r->retry
            ? "Correct the decision</h2>\n<p>A person decided this, and nobody "
              "has started the work since."
            : "Decide how it ended</h2>\n<p>First find out what really "
              "happened: in the owner's logs, or where the work has its "
              "effect.");
    begin_form(f, "resolve", r);
    html_print(f, "<fieldset><legend>How did it end?</legend>\n");
    choice(f, form, "complete", "It was done: later callers get the result.");
    choice(f, form, "release",
           "It did not happen: the next caller runs it, and does not learn of "
           "this attempt.");
    choice(f, form, "fail",
           "It failed for good: later callers get the failure, and nobody runs "
           "it.");
    html_print(
        f,
        "</fieldset>\n<label for=\"result\">If it was done: the result, for "
        "later callers</label>\n"
        "<textarea id=\"result\" name=\"result\" rows=\"2\" "
        "maxlength=\"4000\" spellcheck=\"false\">\n%v</textarea>\n",
        form->result);
    if (cli_is_http(r)) {
        text_field(f, "http", "Its HTTP status, from 200 to 599", form->http);
        text_field(f, "type", "Its content type", form->type);
    }
    reason_field(f, form, "why", "How do you know?", form->reason);
    if (live) {
        force_field(f, r, form->now_ms);
    }
    html_print(f,
               "<button class=\"main\">Decide</button>\n</form></section>\n");
}

static void reopen_form(FILE *f, const struct idem_record *r,
                        const struct page_form *form)
{
    static const struct idem_slice nothing;
    bool sent = form->decision != NULL && strcmp(form->decision, "reopen") == 0;

    html_print(
        f,
        "<section class=\"act\"><h2>Run it again</h2>\n<p>Fix the cause first. "
        "The next caller starts the work, and learns that it takes over: the "
        "work may have had effects. The result on "
        "record is dropped; %s.</p>\n",
        form->audited ? "the audit log keeps it"
                      : "the audit log does not keep it either");
    begin_form(f, "reopen", r);
    html_print(f,
               "<input type=\"hidden\" name=\"decision\" value=\"reopen\">\n");
    reason_field(f, form, "why-again", "Why is it to be run again?",
                 sent ? form->reason : nothing);
    html_print(f, "<button>Reopen</button>\n</form></section>\n");
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
