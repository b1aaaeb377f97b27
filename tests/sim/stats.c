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
    add(to->by_class, more->by_class, CLASSES);
    add(to->killed, more->killed, CLASSES);
    add(to->faults, more->faults, FAULTS);
    add(to->net, more->net, NETS);
    add(to->pg, more->pg, PGS);
    add(to->scenes, more->scenes, SCENES);
    add(to->verdicts, more->verdicts, VERDICTS);
    add(to->codes, more->codes, CODES);
}

const char *class_name(enum class class)
{
#define X(name, text) text,
    static const char *const names[] = {CLASS_MAP(X)};
#undef X

    return names[class];
}

static void line(const char *kind, const char *what, uint64_t n)
{
    printf("%-8s %-34s %llu\n", kind, what, (unsigned long long)n);
}

void stats_print_met(const struct stats *stats)
{
#define X(name, text) text,
    static const char *const scenes[] = {SCENE_MAP(X)};
#undef X
    int i;

    for (i = IDEM_STARTED; i < VERDICTS; i++) {
        line("verdict", idem_verdict_name((enum idem_verdict)i),
             stats->verdicts[i]);
    }
    for (i = 0; i < CODES; i++) {
        line("answer", idem_error_name(-i), stats->codes[i]);
    }
    for (i = 0; i < SCENES; i++) {
        line("scene", scenes[i], stats->scenes[i]);
    }
}

void stats_print(const struct stats *stats)
{
#define X(name, text) text,
    static const char *const faults[] = {FAULT_MAP(X)};
    static const char *const nets[] = {NET_MAP(X)};
    static const char *const pgs[] = {PG_MAP(X)};
#undef X
    int i;

    line("total", "schedules", stats->schedules);
    line("total", "steps", stats->steps);
    line("total", "ops", stats->ops);
    for (i = 0; i < CLASSES; i++) {
        line("class", class_name((enum class)i), stats->by_class[i]);
    }
    for (i = 0; i < CLASSES; i++) {
        line("killed", class_name((enum class)i), stats->killed[i]);
    }
    for (i = 0; i < FAULTS; i++) {
        line("fault", faults[i], stats->faults[i]);
    }
    for (i = 0; i < NETS; i++) {
        line("net", nets[i], stats->net[i]);
    }
    for (i = 0; i < PGS; i++) {
        line("pg", pgs[i], stats->pg[i]);
    }
    stats_print_met(stats);
    printf("%-8s %-34s %016llx\n", "hash", "all traces",
           (unsigned long long)stats->hash);
}
