/* Rows in sorted runs in a file without a name, merged at the end. */
#include "inspect/rows.h"
#include "text/error.h"
#include "text/exit_status.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Before the bytes of text and line, each with its NUL; text_len 0: none. */
struct head {
    int64_t number;
    uint64_t tie;
    uint64_t text_len;
    uint64_t line_len;
};

int cli_row_compare(const struct cli_row *a, const struct cli_row *b,
                    bool descending)
{
    int order = a->text != NULL && b->text != NULL
                    ? strcmp(a->text, b->text)
                    : (a->number > b->number) - (a->number < b->number);

    if (order == 0) {
        order = (a->tie > b->tie) - (a->tie < b->tie);
    }
    return descending ? -order : order;
}

void cli_row_finish(struct cli_row *row)
{
    free(row->line);
    free(row->text);
    memset(row, 0, sizeof(*row));
}

static int failed(const char *what)
{
    cli_say("cannot %s the rows to be sorted, in a temporary file: %s", what,
            strerror(errno));
    return CLI_OUTPUT_FAILED;
}

/* ---- Writing ---- */

static void write_row(FILE *f, const struct cli_row *row)
{
    struct head head = {.number = row->number,
                        .tie = row->tie,
                        .text_len = row->text ? strlen(row->text) + 1 : 0,
                        .line_len = strlen(row->line) + 1};

    (void)fwrite(&head, sizeof(head), 1, f);
    (void)fwrite(row->text, 1, head.text_len, f);
    (void)fwrite(row->line, 1, head.line_len, f);
}

int cli_runs_add(struct cli_runs *runs, const struct cli_row *rows, size_t len)
{
    struct cli_sorted_run *more =
        reallocarray(runs->list, runs->len + 1, sizeof(*more));
    struct cli_sorted_run *run;
    size_t i;

    if (more == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    runs->list = more;
    run = &runs->list[runs->len];
    memset(run, 0, sizeof(*run));
    if (runs->f == NULL) {
        runs->f = tmpfile();
    }
    if (runs->f == NULL) {
        return failed("keep");
    }
    run->at = ftello(runs->f);
    for (i = 0; i < len; i++) {
        write_row(runs->f, &rows[i]);
    }
    run->end = ftello(runs->f);
    if (fflush(runs->f) != 0 || ferror(runs->f)) {
        return failed("write");
    }
    runs->len++;
    return 0;
}

/* ---- Merging ---- */

static bool read_at(struct cli_runs *runs, struct cli_sorted_run *run, void *to,
                    uint64_t len)
{
    ssize_t n = pread(fileno(runs->f), to, (size_t)len, run->at);

    if (n != (ssize_t)len) {
        errno = n < 0 ? errno : EIO;
        return false;
    }
    run->at += n;
    return true;
}

/* The next row of @run; without a line at its end. */
static int next_row(struct cli_runs *runs, struct cli_sorted_run *run)
{
    struct head head;

    cli_row_finish(&run->row);
    if (run->at >= run->end) {
        return 0;
    }
    if (!read_at(runs, run, &head, sizeof(head))) {
        return failed("read");
    }
    run->row.number = head.number;
    run->row.tie = head.tie;
    run->row.line = malloc((size_t)head.line_len);
    run->row.text = head.text_len > 0 ? malloc((size_t)head.text_len) : NULL;
    if (run->row.line == NULL || (head.text_len > 0 && run->row.text == NULL)) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    if (!read_at(runs, run, run->row.text, head.text_len) ||
        !read_at(runs, run, run->row.line, head.line_len)) {
        return failed("read");
    }
    return 0;
}

static struct cli_sorted_run *first_of(struct cli_runs *runs, bool descending)
{
    struct cli_sorted_run *first = NULL;
    size_t i;

    for (i = 0; i < runs->len; i++) {
        struct cli_sorted_run *run = &runs->list[i];

        if (run->row.line != NULL &&
            (first == NULL ||
             cli_row_compare(&run->row, &first->row, descending) < 0)) {
            first = run;
        }
    }
    return first;
}

int cli_runs_print(struct cli_runs *runs, bool descending, FILE *f)
{
    struct cli_sorted_run *run;
    int status = 0;
    size_t i;

    for (i = 0; i < runs->len && status == 0; i++) {
        status = next_row(runs, &runs->list[i]);
    }
    while (status == 0 && !ferror(f) &&
           (run = first_of(runs, descending)) != NULL) {
        (void)fputs(run->row.line, f);
        status = next_row(runs, run);
    }
    return status;
}

void cli_runs_finish(struct cli_runs *runs)
{
    size_t i;

    for (i = 0; i < runs->len; i++) {
        cli_row_finish(&runs->list[i].row);
    }
    free(runs->list);
    if (runs->f != NULL) {
        (void)fclose(runs->f);
    }
    memset(runs, 0, sizeof(*runs));
}
