/* page.h: what a person sees. */
#ifndef IDEM_CLI_UI_PAGE_H
#define IDEM_CLI_UI_PAGE_H

#include "look.h"

#include <stdio.h>

/* What the list shows. */
enum page_show {
    PAGE_LATE, /* What should have ended by now. */
    PAGE_FAILED,
    PAGE_UNKNOWN,
    PAGE_OPEN, /* All of it. */
    PAGE_SHOWS,
};

extern const char *const page_shows[]; /* "overdue" ..., NULL. */

/* What is open, with a search for @key and @scope (may be empty); where there is
 * such a search, what is open and has @key in its key. */
void page_list(FILE *f, const struct cli_look *look, enum page_show show,
               struct idem_slice scope, struct idem_slice key);

/* One record: what is known of it, its story, and, if a person may decide, a form
 * with the @seal. @said (may be NULL) is what came of a decision; @bad: nothing
 * good. */
void page_record(FILE *f, const struct idem_record *record, int64_t now_ms,
                 const char *seal, const char *said, bool bad);

/* A sentence under a title. */
void page_text(FILE *f, const char *title, const char *text);

/* Where the token is asked for. */
void page_login(FILE *f, bool wrong);

#endif
