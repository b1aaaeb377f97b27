/* html.h: pages, in which nothing is a mark but what we wrote. */
#ifndef IDEM_CLI_UI_HTML_H
#define IDEM_CLI_UI_HTML_H

#include <idem.h>
#include <stdio.h>

/* @s as text, for between tags and in quoted attributes: markup becomes entities,
 * what is not printable ASCII becomes \xHH. */
void html_text(FILE *f, struct idem_slice s);

/* "2026-11-21T08:24:00.123Z (3m ago)"; "never"; "-" for 0. */
void html_time(FILE *f, int64_t ms, int64_t now_ms);

/* A link to the page of @record, with its key as the text. */
void html_record_link(FILE *f, const struct idem_record *record);

/* The head of a page, and its end. */
void html_begin(FILE *f, struct idem_slice title);
void html_end(FILE *f);

/* The one style sheet. */
extern const char html_style[];

#endif
