/* Pages without a record: a sentence, an outage, and the way in. */
#include "ui/html.h"
#include "ui/page.h"

static void alert(FILE *f, const char *text)
{
    (void)fputs("<p class=\"said bad\" role=\"alert\">", f);
    html_text(f, idem_str(text));
    (void)fputs("</p>\n", f);
}

void page_text(FILE *f, const char *title, const char *text)
{
    html_begin(f, title, /* inside= */ false);
    (void)fputs("<p>", f);
    html_text(f, idem_str(text));
    (void)fputs("</p>\n<p><a href=\"./\">Back to what is open</a></p>\n", f);
    html_end(f);
}

static void say_decided(FILE *f, bool in_doubt)
{
    (void)fputs(
        in_doubt ? "<p>Your decision may be on record, or may not be: look at "
                   "the record when the store answers. The same decision may "
                   "be sent again.</p>\n"
                 : "<p>Nothing was decided.</p>\n",
        f);
}

void page_outage(FILE *f, const char *reason, bool decided, bool in_doubt,
                 const char *back)
{
    html_begin(f, "The store does not answer", /* inside= */ false);
    alert(f, reason);
    if (decided) {
        say_decided(f, in_doubt);
    }
    (void)fputs(
        "<h2>What to do</h2>\n<ol class=\"steps\">\n"
        "<li>Find the cause: <code>idem doctor</code>, on the host where "
        "<code>idem ui</code> runs, names it.</li>\n"
        "<li>Leave the work alone. While the store is away no new work starts, "
        "and work that ends is kept in the journal of its host.</li>\n"
        "<li>When the store answers again, run <code>idem reconcile</code> on "
        "each host that works: it records what the journals have. Then decide "
        "about what is still unknown.</li>\n</ol>\n"
        "<p><a class=\"button\" href=\"",
        f);
    html_value(f, idem_str(back));
    (void)fputs("\">Try again</a></p>\n", f);
    html_end(f);
}

void page_login(FILE *f, bool wrong)
{
    html_begin(f, "Who are you?", /* inside= */ false);
    if (wrong) {
        alert(f, "That is not the token.");
    }
    (void)
        fputs("<form action=\"/login\" method=\"post\" class=\"box\">\n"
              "<label for=\"token\">The token that <code>idem ui</code> "
              "printed</label>\n"
              "<input type=\"password\" id=\"token\" name=\"token\" autofocus "
              "required autocomplete=\"off\">\n"
              "<button>Enter</button></form>\n",
              f);
    html_end(f);
}
