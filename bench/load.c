/* Callers in threads, each with one operation under way at a time. */
#include "load.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

unsigned short_of_ten;
int64_t short_ms = RETENTION_MS;

enum {
    SECONDS = 2,
    PURGE_SECONDS = 24 * 3600,
    /* A purge rests between the slices of one call, which have 100 records at
     * most: calls for fewer would never rest. */
    PURGE_EACH = 20000
};

struct options {
    const char *where;
    unsigned callers;
    double seconds;
    double warm;
    uint64_t records;
    uint64_t from;
    size_t bytes;
    long pid;
    double start_at;
    double rate;
    uint64_t each;
};

size_t recorded_len = RESULT_LEN;
int64_t retention_ms = RETENTION_MS;

/* What callers do, one after the other. */
struct kind {
    void *(*connect)(void *shared);
    void (*run)(void *caller, const char *key);
    void (*disconnect)(void *caller);
    bool replay; /* Of what is on record. */
};

struct run {
    const struct options *options;
    const struct kind *kind;
    void *shared;
    int64_t begun_ns;
    int64_t from_ns;  /* What begins before is not counted, */
    int64_t until_ns; /* nor what ends after. */
    pthread_barrier_t ready;
};

struct caller {
    struct run *run;
    unsigned number;
    pthread_t thread;
    struct times times;
};

/* SIGTERM ends the measurement early, with its report. */
static volatile sig_atomic_t stopped;

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

static void sleep_until(int64_t ns)
{
    struct timespec ts = {
        .tv_sec = (time_t)(ns / 1000000000),
        .tv_nsec = (long)(ns % 1000000000),
    };

    while (!stopped &&
           clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) != 0) {
    }
}

/* A stream of keys that nobody else has, or the records in no order. */
static void next_key(const struct caller *caller, uint64_t stream, uint64_t n,
                     char key[KEY_LEN + 1])
{
    const struct options *options = caller->run->options;

    if (caller->run->kind->replay) {
        uint64_t i = (n * 2654435761u + caller->number * 7919u +
                      (uint64_t)caller->run->from_ns) %
                     options->records;

        key_of(0, i, key);
    } else {
        key_of(stream, n, key);
    }
}

/* With a rate the callers share it, and who is late does not wait. */
static void wait_for_turn(const struct caller *caller, uint64_t n)
{
    const struct options *options = caller->run->options;

    if (options->rate > 0) {
        sleep_until(caller->run->begun_ns +
                    (int64_t)((double)(n * options->callers + caller->number) /
                              options->rate * 1e9));
    }
}

static void *call(void *arg)
{
    struct caller *caller = arg;
    struct run *run = caller->run;
    void *own = run->kind->connect(run->shared);
    uint64_t stream =
        (uint64_t)now_ns() ^ (uint64_t)getpid() << 40 ^ caller->number;
    char key[KEY_LEN + 1];
    uint64_t n;

    (void)pthread_barrier_wait(&run->ready); /* Connected: times are set. */
    (void)pthread_barrier_wait(&run->ready);
    for (n = 0;; n++) {
        int64_t start_ns;
        int64_t end_ns;

        wait_for_turn(caller, n);
        start_ns = now_ns();
        next_key(caller, stream, n, key);
        run->kind->run(own, key);
        end_ns = now_ns();
        if (stopped || end_ns > run->until_ns) {
            break;
        }
        if (start_ns >= run->from_ns) {
            times_add(&caller->times, end_ns - start_ns);
        }
    }
    run->kind->disconnect(own);
    return NULL;
}

/* Of what this process and the server did until @since and after. */
struct use {
    int64_t own_us;
    int64_t server_us;
    struct calls calls;
};

static struct use use_of(long pid, const struct use *since)
{
    struct use use = {own_cpu_us(), server_cpu_us(pid), own_calls()};

    if (since != NULL) {
        use.own_us -= since->own_us;
        use.server_us -= since->server_us;
        use.calls.reads -= since->calls.reads;
        use.calls.writes -= since->calls.writes;
    }
    return use;
}

/* @part of what was used was used by those in @times. */
static void report(double seconds, struct times *times, const struct use *use,
                   double part)
{
    double each = part / (times->seen > 0 ? (double)times->seen : 1);

    times_sort(times);
    printf("{\"per_s\": %.1f, \"p50_us\": %u, \"p99_us\": %u, \"max_us\": %u, "
           "\"cpu_us\": %.2f, \"server_cpu_us\": %.1f, \"reads\": %.2f, "
           "\"writes\": %.2f, \"peak_kib\": %ld}\n",
           (double)times->seen / seconds, times_at(times, 0.5),
           times_at(times, 0.99), times_at(times, 1),
           (double)use->own_us * each, (double)use->server_us * each,
           (double)use->calls.reads * each, (double)use->calls.writes * each,
           own_peak_kib());
}

static void load(const struct options *options, const struct kind *kind)
{
    struct run run = {.options = options, .kind = kind};
    struct caller *callers = calloc(options->callers, sizeof(*callers));
    struct times all = {NULL, 0, 0, 0};
    struct use before;
    struct use use;
    double seconds;
    sigset_t term;
    unsigned i;

    if (callers == NULL) {
        err(1, "callers");
    }
    run.shared = target.open(options->where);
    if (!kind->replay && options->from == 0 && target.clear != NULL) {
        target.clear(run.shared);
    }
    (void)pthread_barrier_init(&run.ready, NULL, options->callers + 1);
    /* For this thread alone, which sleeps. */
    (void)signal(SIGTERM, stop);
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &term, NULL);
    for (i = 0; i < options->callers; i++) {
        callers[i].run = &run;
        callers[i].number = i;
        if (pthread_create(&callers[i].thread, NULL, call, &callers[i]) != 0) {
            errx(1, "cannot start a thread");
        }
    }
    (void)pthread_sigmask(SIG_UNBLOCK, &term, NULL);
    (void)pthread_barrier_wait(&run.ready);
    if (options->start_at > 0) {
        sleep_until((int64_t)(options->start_at * 1e9));
    }
    run.begun_ns = now_ns();
    run.from_ns = run.begun_ns + (int64_t)(options->warm * 1e9);
    run.until_ns = run.from_ns + (int64_t)(options->seconds * 1e9);
    (void)pthread_barrier_wait(&run.ready);

    sleep_until(run.from_ns);
    before = use_of(options->pid, NULL);
    sleep_until(run.until_ns);
    seconds = (double)(now_ns() - run.from_ns) / 1e9;
    use = use_of(options->pid, &before);

    for (i = 0; i < options->callers; i++) {
        (void)pthread_join(callers[i].thread, NULL);
        times_append(&all, &callers[i].times);
        times_free(&callers[i].times);
    }
    target.close(run.shared);
    report(seconds, &all, &use, 1);
    times_free(&all);
    free(callers);
    (void)pthread_barrier_destroy(&run.ready);
}

/* The same from one thread. */
static void fly(const struct options *options)
{
    void *shared = target.open(options->where);
    struct times times = {NULL, 0, 0, 0};
    int64_t from_ns = now_ns() + (int64_t)(options->warm * 1e9);
    int64_t until_ns = from_ns + (int64_t)(options->seconds * 1e9);
    struct use before = use_of(options->pid, NULL);
    struct use use;

    target.fly(shared, options->callers, from_ns, until_ns, &times);
    use = use_of(options->pid, &before);
    target.close(shared);
    report(options->seconds, &times, &use,
           options->seconds / (options->seconds + options->warm));
    times_free(&times);
}

static void fill(const struct options *options)
{
    int64_t start_ns = now_ns();
    void *shared = target.open(options->where);

    if (options->from == 0 && target.clear != NULL) {
        target.clear(shared);
    }
    target.fill(shared, options->from, options->records - options->from,
                options->bytes);
    target.close(shared);
    printf("{\"per_s\": %.1f}\n", (double)(options->records - options->from) /
                                      ((double)(now_ns() - start_ns) / 1e9));
}

static void usage(void)
{
    errx(64,
         "usage: %s new|next|held|queue|replay|fill|purge WHERE [--callers N] "
         "[--seconds S] [--warm S] [--records N] [--from N] [--bytes N] "
         "[--pid SERVER] [--start-at S] [--retention MS] [--rate PER-S] "
         "[--short OF-TEN] [--short-ms MS] [--each N]",
         program_invocation_short_name);
}

static struct options read_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"callers", required_argument, NULL, 'c'},
        {"seconds", required_argument, NULL, 's'},
        {"warm", required_argument, NULL, 'w'},
        {"records", required_argument, NULL, 'r'},
        {"from", required_argument, NULL, 'f'},
        {"bytes", required_argument, NULL, 'b'},
        {"pid", required_argument, NULL, 'p'},
        {"start-at", required_argument, NULL, 'a'},
        {"short", required_argument, NULL, 'S'},
        {"short-ms", required_argument, NULL, 'm'},
        {"retention", required_argument, NULL, 'R'},
        {"rate", required_argument, NULL, 'o'},
        {"each", required_argument, NULL, 'e'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.callers = 1,
                              .seconds = 0,
                              .warm = 0.5,
                              .bytes = RESULT_LEN,
                              .each = PURGE_EACH};
    int c;

    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (c) {
        case 'c':
            options.callers = (unsigned)atoi(optarg);
            break;
        case 's':
            options.seconds = atof(optarg);
            break;
        case 'w':
            options.warm = atof(optarg);
            break;
        case 'r':
            options.records = strtoull(optarg, NULL, 10);
            break;
        case 'f':
            options.from = strtoull(optarg, NULL, 10);
            break;
        case 'b':
            options.bytes = strtoul(optarg, NULL, 10);
            break;
        case 'p':
            options.pid = atol(optarg);
            break;
        case 'o':
            options.rate = atof(optarg);
            break;
        case 'e':
            options.each = strtoull(optarg, NULL, 10);
            break;
        case 'R':
            retention_ms = atoll(optarg);
            break;
        case 'a':
            options.start_at = atof(optarg);
            break;
        case 'S':
            short_of_ten = (unsigned)atoi(optarg);
            break;
        case 'm':
            short_ms = atol(optarg);
            break;
        default:
            usage();
        }
    }
    if (options.seconds == 0) {
        options.seconds = optind < argc && strcmp(argv[optind], "purge") == 0
                              ? PURGE_SECONDS
                              : SECONDS;
    }
    if (argc - optind != 2 || options.callers < 1 || options.seconds <= 0 ||
        options.bytes > RESULT_LEN || options.each < 1) {
        usage();
    }
    options.where = argv[optind + 1];
    return options;
}

int main(int argc, char **argv)
{
    struct options options = read_options(argc, argv);
    const struct kind kind_new = {target.connect, target.run_new,
                                  target.disconnect, false};
    const struct kind kind_next = {target.connect_next, target.run_next,
                                   target.disconnect_next, false};
    const struct kind kind_replay = {target.connect, target.run_replay,
                                     target.disconnect, true};
    const struct kind kind_held = {target.connect, target.run_held,
                                   target.disconnect, false};
    const char *what = argv[optind];

    recorded_len = options.bytes;
    if (strcmp(what, "new") == 0) {
        load(&options, &kind_new);
    } else if (strcmp(what, "next") == 0 && target.run_next != NULL) {
        load(&options, &kind_next);
    } else if (strcmp(what, "held") == 0 && target.run_held != NULL) {
        load(&options, &kind_held);
    } else if (strcmp(what, "queue") == 0 && target.fly != NULL) {
        fly(&options);
    } else if (strcmp(what, "replay") == 0 && options.records > 0) {
        load(&options, &kind_replay);
    } else if (strcmp(what, "fill") == 0 && options.records > options.from) {
        fill(&options);
    } else if (strcmp(what, "purge") == 0 && target.purge != NULL) {
        target.purge(options.where,
                     options.records > 0 ? options.records : UINT64_MAX,
                     options.seconds, options.each);
    } else {
        usage();
    }
    return 0;
}
