/* Finds the shortest beginning of a history that fails, and the answers of it that matter.
 *
 * Both searches rest on one fact: to forget an answer, as if its process had died, only
 * ever makes a history easier to explain. */
#include "explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct part {
    const struct history *h;
    struct op *ops;             /* Copies, whose answers may be forgotten. */
    const struct op **pointers; /* To those that are searched. */
    size_t len;
    uint64_t budget; /* Of one search. */
    uint64_t left;   /* Of all of them. */
};

static void forget(struct op *op)
{
    op->answer = ANSWER_NONE;
    op->back = INT64_MAX;
    op->store_back = INT64_MAX;
}

static enum found look(struct part *part, struct search *ret_search)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < part->len; i++) {
        bool useless =
            part->ops[i].answer == ANSWER_NONE && part->ops[i].verb == VERB_GET;

        if (!useless) {
            part->pointers[n++] = &part->ops[i];
        }
    }
    search(part->h, part->pointers, n, part->budget, ret_search);
    part->left -=
        ret_search->tried < part->left ? ret_search->tried : part->left;
    return ret_search->found;
}

/* Copies @ops as they were known at the time @until. */
static void cut(struct part *part, const struct op *const *ops, size_t len,
                int64_t until)
{
    size_t i;

    part->len = 0;
    for (i = 0; i < len && ops[i]->call <= until; i++) {
        part->ops[part->len] = *ops[i];
        if (ops[i]->back > until) {
            forget(&part->ops[part->len]);
        }
        part->len++;
    }
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* Returns the time from which the history cannot be explained. */
static int64_t failing_time(struct part *part, const struct op *const *ops,
                            size_t len)
{
    int64_t *times = calloc(len + 1, sizeof(*times));
    struct search search;
    size_t low = 0;
    size_t high = 0;
    int64_t time;
    size_t i;

    if (times == NULL) {
        abort();
    }
    for (i = 0; i < len; i++) {
        if (ops[i]->answer != ANSWER_NONE) {
            times[high++] = ops[i]->back;
        }
    }
    qsort(times, high, sizeof(*times), by_number);
    high--;
    while (low < high) {
        size_t mid = low + (high - low) / 2;

        cut(part, ops, len, times[mid]);
        if (look(part, &search) == FOUND_NONE) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    time = times[high];
    free(times);
    return time;
}

/* Forgets answers, many at a time and then fewer, while the rest still fails and the budget
 * lasts: only these are shown. */
static void reduce(struct part *part)
{
    struct op *kept = calloc(part->len + 1, sizeof(*kept));
    struct search search;
    size_t step;
    size_t at;

    if (kept == NULL) {
        abort();
    }
    for (step = (part->len + 1) / 2; step > 0; step /= 2) {
        for (at = 0; at < part->len && part->left > 0; at += step) {
            size_t n = part->len - at < step ? part->len - at : step;
            size_t i;

            memcpy(kept, part->ops + at, n * sizeof(*kept));
            for (i = at; i < at + n; i++) {
                forget(&part->ops[i]);
            }
            if (look(part, &search) != FOUND_NONE) {
                memcpy(part->ops + at, kept, n * sizeof(*kept));
            }
        }
    }
    free(kept);
}

static const char *answer_name(const struct op *op)
{
    static const char *const names[] = {"OK", "LOST", "NOTFOUND", "INVALID"};

    return op->verb == VERB_BEGIN
               ? idem_verdict_name((enum idem_verdict)op->answer)
               : names[op->answer - ANSWER_OK];
}

static void say_op(const struct history *h, const struct op *op)
{
    static const char *const names[] = {"begin", "end", "renew",  "expire",
                                        "get",   "",    "import", "purge"};
    const char *verb = names[op->verb];

    if (op->verb == VERB_END || op->verb == VERB_RESOLVE) {
        verb = idem_status_name((enum idem_status)op->as);
    }
    printf("    %.3f ... %.3f  %s: %s%s", (double)op->call / 1e3,
           (double)op->back / 1e3, words_text(&h->words, op->id),
           op->verb == VERB_RESOLVE ? "resolve as " : "", verb);
    if (op->verb != VERB_BEGIN && op->verb != VERB_GET) {
        printf(" fence %" PRId64, op->fence);
    }
    printf(" -> %s", answer_name(op));
    if (op->shown.fence >= 0) {
        printf(" fence %" PRId64, op->shown.fence);
    }
    if (op->shown.attempts >= 0) {
        printf(" attempts %" PRId64, op->shown.attempts);
    }
    if (op->shown.status >= 0) {
        printf(" %s", idem_status_name((enum idem_status)op->shown.status));
    }
    if (op->shown.content != WORD_NONE) {
        printf(" content %s", words_text(&h->words, op->shown.content));
    }
    printf("  (line %u)\n", op->line);
}

void explain(const struct history *h, word key, const struct op *const *ops,
             size_t len, uint64_t budget)
{
    struct part part = {.h = h, .budget = budget, .left = 10 * budget};
    struct search search;
    char stuck[256];
    const struct op *last = NULL;
    int64_t until;
    size_t answers = 0;
    size_t i;

    part.ops = calloc(len + 1, sizeof(*part.ops));
    part.pointers = calloc(len + 1, sizeof(*part.pointers));
    if (part.ops == NULL || part.pointers == NULL) {
        abort();
    }
    until = failing_time(&part, ops, len);
    cut(&part, ops, len, until);
    (void)look(&part, &search);
    spec_describe(h, &search.stuck, stuck);
    for (i = 0; i < part.len; i++) {
        answers += part.ops[i].answer != ANSWER_NONE;
        if (part.ops[i].back == until) {
            last = &part.ops[i];
        }
    }
    printf("BAD history %s, key %s: no order explains %s, answer %zu of its "
           "key\n",
           words_text(&h->words, h->name), words_text(&h->words, key),
           words_text(&h->words, last->id), answers);
    printf("  the nearest one ends with: %s\n", stuck);
    reduce(&part);
    printf("  these answers do not go together:\n");
    for (i = 0; i < part.len; i++) {
        if (part.ops[i].answer != ANSWER_NONE) {
            say_op(h, &part.ops[i]);
        }
    }
    free(part.ops);
    free(part.pointers);
}
