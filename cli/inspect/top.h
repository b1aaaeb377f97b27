/* top.h: what idem top draws, and where. */
#ifndef IDEM_CLI_INSPECT_TOP_H
#define IDEM_CLI_INSPECT_TOP_H

#include "record/open_records.h"

/* ---- top_terminal.c ---- */

struct top_terminal {
    bool live;     /* Drawn again and again; else once, as plain text. */
    bool has_keys; /* Somebody can type. */
    int signals; /* Readable when the window has another size, or at Ctrl-Z. */
};

/* Finds out what stdin and stdout are. On a terminal the other screen is entered,
 * and typed keys come one by one, and unseen. */
void top_enter(struct top_terminal *terminal);

/* Gives the terminal back as it was. */
void top_leave(struct top_terminal *terminal);

enum top_event {
    TOP_QUIT,
    TOP_LOOK,     /* It is time, or somebody wants it now. */
    TOP_DRAW,     /* The window has changed. */
    TOP_OUTCOMES, /* Somebody wants to see what failed, or all again. */
};

/* Handles the events before @until_ms (cli_mono_ms()). @stop is readable when
 * it is to end. */
enum top_event top_wait(struct top_terminal *terminal, int stop,
                        int64_t until_ms);

/* ---- top_table.c ---- */

/* The rows that are drawn. */
struct top_view {
    const struct cli_snapshot *snapshot;
    const char *rates;  /* A line; may be empty. */
    const char *outage; /* Why the last look failed; NULL: it did not. */
    bool outcomes;      /* Only what was completed with a failure. */
};

/* Keeps for the table more open records, and more that were completed with a
 * failure, than any window shows. */
extern const struct cli_snapshot_keep top_keep;

/* Draws it on the window of @terminal, or prints all of it once. */
void top_draw(const struct top_terminal *terminal, const struct top_view *view);

#endif
