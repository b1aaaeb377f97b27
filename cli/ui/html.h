/* html.h: pages, in which nothing is markup but what this program wrote. */
#ifndef IDEM_CLI_UI_HTML_H
#define IDEM_CLI_UI_HTML_H

#include <idem.h>
#include <stdio.h>

/* @s as text, for between tags and in quoted attributes: markup becomes entities,
 * UTF-8 stays, what cannot be seen becomes \xHH. */
void html_text(FILE *f, struct idem_slice s);

/* A key, in the form that the search and the commands take back. */
void html_key(FILE *f, struct idem_slice key);

/* @s as the value of an input: what can be seen stays as it was typed. */
void html_value(FILE *f, struct idem_slice s);

/* Two hex digits for each byte: in a link any byte may be in a key. */
void html_hex(FILE *f, struct idem_slice s);

/* "3 minutes ago", and the moment in UTC where the mouse rests on it; "never"; "-"
 * for 0. */
void html_time(FILE *f, int64_t ms, int64_t now_ms);

/* Both in the text: "3 minutes ago, 2026-11-21 08:24:00 UTC". */
void html_full_time(FILE *f, int64_t ms, int64_t now_ms);

/* "2026-11-21 08:24:00 UTC" in @buf. */
void html_utc(int64_t ms, char buf[48]);

/* The status of @record in words, and in colour, with "overdue" beside it. */
void html_status(FILE *f, const struct idem_record *record, bool overdue);

/* A link to the page of @record, with its key as the text. All links are relative: a
 * page does not know the secret that is in its path. */
void html_record_link(FILE *f, const struct idem_record *record);

/* The store and the host, which a person who is inside is shown on each list and
 * record: several may be open. */
void html_set_place(const char *place);

/* The head of a page with its title, up to the start of the heading, and its end.
 * @title is already text for people. */
void html_begin(FILE *f, const char *title, bool inside);

/* The same for the page of a key, which is its title. */
void html_begin_key(FILE *f, struct idem_slice key);
void html_end(FILE *f);

/* The one style sheet. */
void html_style(FILE *f);

#endif
