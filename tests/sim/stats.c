/* Counting, adding, printing. */
#include "stats.h"

#include <stdio.h>

static void add(uint64_t *to, const uint64_t *more, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        to[i] += more[i];
    }
}

void stats_add(struct stats *to, const struct stats *more)
{
    to->schedules += more->schedules;
    to->steps += more->steps;
    to->ops += more->ops;
    to->hash += more->hash;
    add(to->faults, more->faults, FAULTS);
    add(to->scenes, more->scenes, SCENES);
    add(to->verdicts, more->verdicts, VERDICTS);
    add(to->codes, more->codes, CODES);
}

static void line(const char *kind, const char *what, uint64_t n)
{
    printf("%-8s %-34s %llu\n", kind, what, (unsigned long long)n);
}

void stats_print(const struct stats *stats)
{
#define X(name, text) text,
    static const char *const faults[] = {FAULT_MAP(X)};
    static const char *const scenes[] = {SCENE_MAP(X)};
#undef X
    int i;

    line("total", "schedules", stats->schedules);
    line("total", "steps", stats->steps);
    line("total", "ops", stats->ops);
    for (i = IDEM_STARTED; i < VERDICTS; i++) {
        line("verdict", idem_verdict_name((enum idem_verdict)i),
             stats->verdicts[i]);
    }
    for (i = 0; i < CODES; i++) {
        line("answer", idem_error_name(-i), stats->codes[i]);
    }
    for (i = 0; i < FAULTS; i++) {
        line("fault", faults[i], stats->faults[i]);
    }
    for (i = 0; i < SCENES; i++) {
        line("scene", scenes[i], stats->scenes[i]);
    }
    printf("%-8s %-34s %016llx\n", "hash", "all traces",
           (unsigned long long)stats->hash);
}
