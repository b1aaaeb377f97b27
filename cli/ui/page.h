/* page.h: the pages that a person sees; only text that this program wrote is markup in
 * them. */
#ifndef IDEM_CLI_UI_PAGE_H
#define IDEM_CLI_UI_PAGE_H

#include "record/open_records.h"

#include <idem.h>
#include <stdio.h>

/* Prints markup, in which values are escaped by what they are:
 *
 *     %s   const char *         markup of this program, as it is
 *     %u   uint64_t
 *     %t   struct idem_slice    text, between tags and in quoted attributes: markup
 *                               becomes entities, UTF-8 stays, and what cannot be
 *                               seen becomes \xHH
 *     %k   struct idem_slice    a key, in the form that the search and the commands
 *                               take back
 *     %v   struct idem_slice    the value of an input: what can be seen stays as it was
 *                               typed
 *     %x   struct idem_slice    two hex digits for each byte: in a link any byte may be
 *                               in a key
 *     %T   int64_t, int64_t     a moment and now: "3 minutes ago", with the moment in
 *                               UTC as its title; "never"; "-" for 0
 *     %%   a percent sign
 */
void html_print(FILE *f, const char *format, ...);

/* Both in the text: "3 minutes ago, 2026-11-21 08:24:00 UTC". */
void html_full_time(FILE *f, int64_t ms, int64_t now_ms);

/* "2026-11-21 08:24:00 UTC" in @buf. */
void html_utc(int64_t ms, char buf[48]);

/* The status of @record in words, and in colour, with "overdue" beside it. */
void html_status(FILE *f, const struct idem_record *record, bool overdue);

/* A link to the page of @record, with its key as the text. All links are relative: a
 * page does not know the secret that is in its path. */
void html_record_link(FILE *f, const struct idem_record *record);

/* Sets the store and the host, which each list and record shows to a person who has
 * logged in: pages of several may be open. */
void html_set_place(const char *place);

/* The head of a page with its title, up to the start of the heading, and its end.
 * @title is already text for people. */
void html_begin(FILE *f, const char *title, bool inside);

/* The same for the page of a key, which is its title. */
void html_begin_key(FILE *f, struct idem_slice key);
void html_end(FILE *f);

/* The one style sheet, style.css. */
extern const char ui_style_text[];

/* ---- The pages ---- */

/* The contents of the list. */
enum page_show {
    PAGE_LATE, /* The records that should have ended by now. */
    PAGE_UNKNOWN,
    PAGE_FAILED,
    PAGE_RETRY,    /* Its attempt is over: the next caller runs it. */
    PAGE_OPEN,     /* All of it. */
    PAGE_OUTCOMES, /* Completed with a failure: an exit or HTTP status. */
    PAGE_SHOWS,
};

extern const char *const page_shows[]; /* "overdue" ... "outcomes", NULL. */

/* A search: the text as a person typed it, to show it again, and its meaning. Each may
 * be empty. */
struct page_search {
    struct idem_slice typed_scope;
    struct idem_slice typed_key;
    struct idem_slice scope; /* Of this scope ... */
    struct idem_slice key;   /* ... with these bytes in the key. */
};

/* Which records a page of the list shows. */
struct page_choice {
    enum page_show show;
    const struct page_search *search;
};

/* Keeps the records of page_list() with @choice. */
struct cli_snapshot_keep page_list_keep(struct page_choice *choice);

/* Lists open records, and those completed with a failure, as @choice says. */
void page_list(FILE *f, const struct cli_snapshot *snapshot,
               const struct page_choice *choice);

/* The facts that the page of a record needs beside it. */
struct page_form {
    int64_t now_ms;
    const char *who;      /* The person who decides. */
    const char *said;     /* The result of a decision; NULL: none was made. */
    bool audited;         /* The audit log keeps a record that is reopened. */
    bool bad;             /* The decision was refused, and ... */
    const char *decision; /* ... the form shows again what was sent. */
    struct idem_slice result;
    struct idem_slice http;
    struct idem_slice type;
    struct idem_slice reason;
};

/* One record: what is known of it, its history, and, where a person may decide or let
 * it be run again, the forms. */
void page_record(FILE *f, const struct idem_record *record,
                 const struct page_form *form);

/* The forms of page_record(). */
void page_forms(FILE *f, const struct idem_record *record,
                const struct page_form *form);

/* A sentence under a title. */
void page_text(FILE *f, const char *title, const char *text);

/* The store does not answer, for @reason, which names it. With @decided a decision was
 * on its way; @in_doubt: it may be on record. @back is where to try again. */
void page_outage(FILE *f, const char *reason, bool decided, bool in_doubt,
                 const char *back);

/* The page that asks for the token. */
void page_login(FILE *f, bool wrong);

#endif
