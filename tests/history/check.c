/* check: does some order of the operations, one after the other, explain every answer in
 * these histories? history.h draws the format. */
#include "explain.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: check [--merge] [--budget STATES] [--quiet] [FILE ...]\n"
    "\n"
    "Reads histories (format: tests/history/history.h) from the files or from\n"
    "stdin. --merge: all files are parts of one history, as when each process\n"
    "wrote its own. --quiet: says which are bad, and not why.\n"
    "Exit status: 0 all are good, 1 some are bad, 2 some took too long, 64 some\n"
    "cannot be read.\n";

struct totals {
    uint64_t budget;
    bool quiet;
    unsigned long histories;
    unsigned long ops;
    unsigned long bad;
    unsigned long too_hard;
    uint64_t most_states; /* Of one history, */
    char hardest[64];     /* which is this one; */
    double slowest_s;     /* and this is the longest that one took. */
};

static double now_s(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The ops that are about @key. */
static size_t of_key(const struct history *h, word key, const struct op **ops)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < h->len; i++) {
        if (h->ops[i].key == key || h->ops[i].key == WORD_NONE) {
            ops[n++] = &h->ops[i];
        }
    }
    return n;
}

static void judge_key(const struct history *h, word key, const struct op **ops,
                      struct totals *totals, enum found *worst,
                      uint64_t *states)
{
    size_t len = of_key(h, key, ops);
    struct search found;

    search(h, ops, len, totals->budget, &found);
    *states += found.tried;
    if (found.found == FOUND_NONE && totals->quiet) {
        printf("BAD history %s, key %s\n", words_text(&h->words, h->name),
               words_text(&h->words, key));
    } else if (found.found == FOUND_NONE) {
        explain(h, key, ops, len, totals->budget);
    } else if (found.found == FOUND_TOO_HARD) {
        printf("TOO HARD history %s, key %s: %zu ops, gave up after %" PRIu64
               " states\n",
               words_text(&h->words, h->name), words_text(&h->words, key), len,
               found.tried);
    }
    if (found.found == FOUND_NONE ||
        (found.found == FOUND_TOO_HARD && *worst == FOUND_ORDER)) {
        *worst = found.found;
    }
}

static void judge(struct history *h, struct totals *totals)
{
    enum found worst = FOUND_ORDER;
    const struct op **ops;
    uint64_t states = 0;
    double start = now_s();
    size_t i;

    history_seal(h);
    ops = calloc(h->len + 1, sizeof(*ops));
    if (ops == NULL) {
        abort();
    }
    memset(h->words.tags, 0, h->words.cap * sizeof(*h->words.tags));
    for (i = 0; i < h->len; i++) {
        word key = h->ops[i].key;

        if (key != WORD_NONE && h->words.tags[key] == 0) {
            h->words.tags[key] = 1;
            judge_key(h, key, ops, totals, &worst, &states);
        }
    }
    free(ops);
    start = now_s() - start;
    totals->histories++;
    totals->ops += h->len;
    totals->bad += worst == FOUND_NONE;
    totals->too_hard += worst == FOUND_TOO_HARD;
    totals->slowest_s = start > totals->slowest_s ? start : totals->slowest_s;
    if (states > totals->most_states) {
        totals->most_states = states;
        (void)snprintf(totals->hardest, sizeof(totals->hardest), "%s",
                       words_text(&h->words, h->name));
    }
}

/* Checks all histories of one file. False: it cannot be read. */
static bool judge_file(struct reader *reader, struct totals *totals)
{
    struct history h;
    int rc;

    for (;;) {
        history_init(&h);
        rc = history_read(&h, reader, /* merge= */ false);
        if (rc == 1) {
            judge(&h, totals);
        }
        history_finish(&h);
        if (rc != 1) {
            return rc == 0;
        }
    }
}

static bool open_file(struct reader *reader, const char *path)
{
    memset(reader, 0, sizeof(*reader));
    reader->path = path;
    reader->file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (reader->file == NULL) {
        perror(path);
    }
    return reader->file != NULL;
}

static void close_file(struct reader *reader)
{
    (void)fclose(reader->file);
    free(reader->text);
}

static bool judge_merged(char **paths, struct totals *totals)
{
    struct history h;
    struct reader reader;
    bool readable = true;

    history_init(&h);
    for (; *paths != NULL && readable; paths++) {
        readable = open_file(&reader, *paths);
        if (readable) {
            readable = history_read(&h, &reader, /* merge= */ true) >= 0;
            close_file(&reader);
        }
    }
    if (readable) {
        judge(&h, totals);
    }
    history_finish(&h);
    return readable;
}

static bool judge_each(char **paths, struct totals *totals)
{
    struct reader reader;
    bool readable = true;

    for (; *paths != NULL && readable; paths++) {
        readable = open_file(&reader, *paths);
        if (readable) {
            readable = judge_file(&reader, totals);
            close_file(&reader);
        }
    }
    return readable;
}

static int report(const struct totals *t)
{
    if (t->bad > 0) {
        printf("BAD %lu of %lu histories, %lu ops", t->bad, t->histories,
               t->ops);
    } else if (t->too_hard > 0) {
        printf("TOO HARD %lu of %lu histories, %lu ops", t->too_hard,
               t->histories, t->ops);
    } else {
        printf("OK %lu histories, %lu ops", t->histories, t->ops);
    }
    printf("; at most %" PRIu64 " states (%s) and %.3f s of CPU for one\n",
           t->most_states, t->hardest, t->slowest_s);
    return t->bad > 0 ? 1 : t->too_hard > 0 ? 2 : 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"merge", no_argument, NULL, 'm'},
        {"budget", required_argument, NULL, 'b'},
        {"quiet", no_argument, NULL, 'q'},
        {NULL, 0, NULL, 0},
    };
    char dash[] = "-";
    char *from_stdin[] = {dash, NULL};
    struct totals totals = {.budget = 4000000};
    char **paths;
    bool merge = false;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'm':
            merge = true;
            break;
        case 'b':
            totals.budget = strtoull(optarg, NULL, 10);
            break;
        case 'q':
            totals.quiet = true;
            break;
        default:
            (void)fputs(usage, stderr);
            return 64;
        }
    }
    paths = optind < argc ? argv + optind : from_stdin;
    if (!(merge ? judge_merged(paths, &totals) : judge_each(paths, &totals))) {
        return 64;
    }
    return report(&totals);
}
