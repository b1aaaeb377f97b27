/* One of many processes that ask about the same requests.
 *
 *     client STORE MAX IDS WINDOWS PROCESS PROCESSES AT DEPTH LOG
 *
 * In each window there are so many requests as IDS says. The process asks about
 * each that is its own, and about others at random, so that three of ten
 * asks are retries. To LOG it adds a line for each answer: window, request,
 * admitted, remaining, and when, in ms. */
#include "../lib/whole_line.h"

#include <fcntl.h>
#include <idem.h>
#include <idem/limit.h>
#include <idem/queue.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    GIVE_UP_S = 250 /* Nobody answers any more. */
};

struct ask {
    unsigned window;
    unsigned request;
};

struct run {
    unsigned long max;
    unsigned ids;
    unsigned windows;
    unsigned process;
    unsigned processes;
    long long at_ms;
    size_t depth;
    int log;
    uint64_t seed;
    /* Where the walk over the requests stands. */
    unsigned window;
    unsigned request;
};

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static uint64_t draw(struct run *r)
{
    r->seed ^= r->seed << 13;
    r->seed ^= r->seed >> 7;
    r->seed ^= r->seed << 17;
    return r->seed >> 11;
}

/* False: there are no more. */
static bool next_ask(struct run *r, struct ask *ret)
{
    if (r->request > r->process && draw(r) % 10 < 3) {
        *ret = (struct ask){r->window, (unsigned)(draw(r) % r->ids)};
        return true;
    }
    while (r->request >= r->ids && r->window < r->windows) {
        r->window++;
        r->request = r->process;
    }
    if (r->window >= r->windows || r->process >= r->ids) {
        return false;
    }
    *ret = (struct ask){r->window, r->request};
    r->request += r->processes;
    return true;
}

static void heard(const struct run *r, struct ask ask, bool admitted,
                  uint64_t remaining)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (!append_whole_line(r->log, "%u %u %d %llu %lld", ask.window,
                           ask.request, admitted, (unsigned long long)remaining,
                           (long long)now.tv_sec * 1000 +
                               now.tv_nsec / 1000000)) {
        die("log", "cannot be written");
    }
}

static struct idem_op *make_op(const struct run *r, struct ask ask)
{
    struct idem_limit_request limit = IDEM_LIMIT_INIT;
    struct ask *kept = malloc(sizeof(*kept));
    struct idem_error error;
    struct idem_op *op;
    char subject[16];
    char request[16];

    (void)snprintf(subject, sizeof(subject), "u%u", ask.window);
    (void)snprintf(request, sizeof(request), "r%u", ask.request);
    limit.name = idem_str("test");
    limit.subject = idem_str(subject);
    limit.request = idem_str(request);
    limit.at_ms = r->at_ms;
    limit.per_ms = IDEM_LIMIT_DAY;
    limit.max = r->max;
    if (kept == NULL) {
        die("limit", "no memory");
    }
    if (idem_op_limit(&limit, &op, &error) != 0) {
        die("limit", error.text);
    }
    *kept = ask;
    idem_op_set_user(op, kept);
    return op;
}

static void ask_all(struct run *r, const char *url)
{
    struct idem_error error;
    struct idem_store *store;
    struct idem_queue *queue;
    time_t until = time(NULL) + GIVE_UP_S;
    struct ask ask;
    bool more = true;

    if (idem_open(url, NULL, &store, &error) != 0 ||
        idem_queue_create(store, &queue, &error) != 0) {
        die("open", error.text);
    }
    while (more || idem_queue_len(queue) > 0) {
        struct idem_op *op;
        const struct idem_limited *limited;

        while (more && idem_queue_len(queue) < r->depth) {
            more = next_ask(r, &ask);
            if (more &&
                idem_queue_submit(queue, make_op(r, ask), &error) != 0) {
                die("submit", error.text);
            }
        }
        op = idem_queue_reap(queue, -1);
        if (op == NULL) {
            continue;
        }
        limited = idem_op_limited(op);
        if (limited == NULL &&
            idem_error_kind(idem_op_code(op)) == IDEM_KIND_RETRY &&
            time(NULL) < until) {
            if (idem_queue_submit(queue, op, &error) != 0) {
                die("submit", error.text);
            }
            continue;
        }
        if (limited == NULL) {
            die("limit", idem_op_error(op)->text);
        }
        heard(r, *(struct ask *)idem_op_user(op), limited->admitted,
              limited->remaining);
        free(idem_op_user(op));
        idem_op_destroy(op);
    }
    idem_queue_destroy(queue);
    idem_close(store);
}

int main(int argc, char **argv)
{
    struct run r = {0};

    if (argc != 10) {
        die("client", "nine arguments");
    }
    r.max = strtoul(argv[2], NULL, 10);
    r.ids = (unsigned)strtoul(argv[3], NULL, 10);
    r.windows = (unsigned)strtoul(argv[4], NULL, 10);
    r.process = (unsigned)strtoul(argv[5], NULL, 10);
    r.processes = (unsigned)strtoul(argv[6], NULL, 10);
    r.at_ms = strtoll(argv[7], NULL, 10);
    r.depth = strtoul(argv[8], NULL, 10);
    r.request = r.process;
    r.seed = 88172645463325252ULL + 7919 * r.process + (uint64_t)getpid();
    r.log = open(argv[9], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (r.log < 0) {
        die("log", "cannot be opened");
    }
    ask_all(&r, argv[1]);
    return 0;
}
