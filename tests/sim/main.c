/* sim: runs libidem through seeded schedules, or through all that can happen in
 * small worlds, and judges what comes of it. */
#include "run.h"
#include "service.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: sim [--seed S] [--schedules N] [--class uniform|priority|swizzle]\n"
    "           [--mode embedded|remote|dynamodb|postgres] [--jobs J]\n"
    "           [--go-on] [--trace] [--hashes] [--clients N] [--rounds N] [--history FILE]\n"
    "       sim --small SCRIPT|all [--faults N] [--delays N]\n"
    "           [--mode embedded|remote] [--twice] [--jobs J] [--go-on]\n"
    "       sim --small SCRIPT --mode embedded|remote --faults N --delays N\n"
    "           --path PATH [--trace]\n"
    "\n"
    "--history writes what clients were answered, and leaves the judgement to\n"
    "tests/history/check: one file for each job, FILE.0, FILE.1 ...\n";

static void bad_usage(void)
{
    (void)fputs(usage, stderr);
    exit(64);
}

static int parse_mode(const char *name)
{
    int mode = MODES - 1;

    while (mode >= 0 && strcmp(name, mode_name((enum mode)mode)) != 0) {
        mode--;
    }
    if (mode < 0) {
        bad_usage();
    }
    return mode;
}

static int parse_class(const char *name)
{
    int class = CLASSES - 1;

    while (class >= 0 && strcmp(name, class_name((enum class) class)) != 0) {
        class --;
    }
    if (class < 0) {
        bad_usage();
    }
    return class;
}

static void parse_option(int c, struct run *run)
{
    switch (c) {
    case 's':
        run->seed = strtoull(optarg, NULL, 10);
        break;
    case 'n':
        run->schedules = strtoull(optarg, NULL, 10);
        break;
    case 'j':
        run->jobs = (unsigned)strtoul(optarg, NULL, 10);
        break;
    case 'm':
        run->forced.mode = parse_mode(optarg);
        break;
    case 'c':
        run->forced.class = parse_class(optarg);
        break;
    case 'C':
        run->forced.clients = (unsigned)strtoul(optarg, NULL, 10);
        break;
    case 'r':
        run->forced.rounds = (unsigned)strtoul(optarg, NULL, 10);
        break;
    case 'H':
        run->history = optarg;
        break;
    case 'g':
        run->go_on = true;
        break;
    case 't':
        run->trace = true;
        break;
    case 'h':
        run->hashes = true;
        break;
    case 'S':
        run->script = optarg;
        break;
    case 'f':
        run->faults_max = (unsigned)strtoul(optarg, NULL, 10);
        break;
    case 'd':
        run->delays_max = (unsigned)strtoul(optarg, NULL, 10);
        break;
    case 'w':
        run->twice = true;
        break;
    case 'p':
        run->path = optarg;
        break;
    default:
        bad_usage();
    }
}

static void parse(int argc, char **argv, struct run *run)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},
        {"schedules", required_argument, NULL, 'n'},
        {"jobs", required_argument, NULL, 'j'},
        {"mode", required_argument, NULL, 'm'},
        {"class", required_argument, NULL, 'c'},
        {"clients", required_argument, NULL, 'C'},
        {"rounds", required_argument, NULL, 'r'},
        {"history", required_argument, NULL, 'H'},
        {"go-on", no_argument, NULL, 'g'},
        {"trace", no_argument, NULL, 't'},
        {"hashes", no_argument, NULL, 'h'},
        {"small", required_argument, NULL, 'S'},
        {"faults", required_argument, NULL, 'f'},
        {"delays", required_argument, NULL, 'd'},
        {"twice", no_argument, NULL, 'w'},
        {"path", required_argument, NULL, 'p'},
        {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        parse_option(c, run);
    }
}

int main(int argc, char **argv)
{
    struct run run = {
        .seed = 1,
        .schedules = 1000,
        .jobs = 1,
        .forced = {.mode = -1, .class = -1},
        .faults_max = 1,
        .delays_max = 1,
    };

    parse(argc, argv, &run);
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* Jobs share it, line by line. */
    if (run.jobs < 1 || run.jobs > JOBS_MAX ||
        run.forced.clients > CLIENTS_MAX ||
        (run.script != NULL && run.forced.mode >= DYNAMODB) ||
        (run.forced.mode == POSTGRES && service_of(POSTGRES) == NULL)) {
        bad_usage();
    }
    return run.script != NULL ? run_small(&run) : run_seeds(&run);
}
