/* A program on libidem, as it is killed.
 *
 *     worker ROLE PATH LEDGER LEN KEY...
 */
#include "worker.h"

#include "base/crash.h"
#include "ledger.h"
#include "product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const struct {
    const char *name;
    int (*run)(struct worker *w);
    enum style style;
} roles[] = {
    {"work", role_work, STYLE_ANY},
    {"complete", role_work, STYLE_COMPLETE},
    {"release", role_work, STYLE_RELEASE},
    {"renew", role_work, STYLE_RENEW},
    {"expire", role_work, STYLE_EXPIRE},
    {"threads", role_threads, STYLE_ANY},
    {"batch", role_batch, STYLE_ANY},
    {"chain", role_chain, STYLE_ANY},
    {"abandon", role_abandon, STYLE_ANY},
    {"purge", role_purge, STYLE_ANY},
    {"in", role_in, STYLE_ANY},
    {"open", role_open, STYLE_ANY},
    {"leave", role_leave, STYLE_ANY},
    {"restore", role_restore, STYLE_ANY},
};

uint64_t worker_random(struct worker *w, uint64_t below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random % below;
}

void worker_request(const char *key, struct idem_request *ret_request)
{
    struct idem_request request = IDEM_REQUEST_INIT;

    request.key = idem_str(key);
    request.on_expired_lease = key[0] == 'h' ? IDEM_HOLD : IDEM_RERUN;
    request.lease_ms = IDEM_LEASE_MIN_MS;
    request.retention_ms = IDEM_NEVER;
    request.attempts_max = 0;
    *ret_request = request;
}

void worker_started(const char *key, const struct idem_attempt *attempt)
{
    ledger_note(/* durable= */ false, "S %s %llu %u %ld", key,
                (unsigned long long)attempt->fence, (unsigned)attempt->attempts,
                (long)getpid());
}

void worker_effect(const char *key, const struct idem_attempt *attempt)
{
    IDEM__CRASH_POINT("worker/before-effect");
    if (idem_attempt_lease_left_ms(attempt) > 0) {
        ledger_note(/* durable= */ true, "E %s %llu %ld", key,
                    (unsigned long long)attempt->fence, (long)getpid());
    }
    IDEM__CRASH_POINT("worker/after-effect");
}

static void note_replay(const char *key, const struct idem_record *record)
{
    struct idem_slice bytes = record->result.bytes;
    char id[PRODUCT_ID] = "";

    if (product_check(bytes.base, bytes.len, id)) {
        ledger_note(/* durable= */ false, "R %s %llu %ld %s", key,
                    (unsigned long long)record->fence, (long)getpid(), id);
    } else {
        ledger_note(/* durable= */ false, "X %s %llu %ld", key,
                    (unsigned long long)record->fence, (long)getpid());
    }
}

void worker_note(const char *key, const struct idem_attempt *attempt)
{
    if (attempt->verdict == IDEM_REPLAY) {
        note_replay(key, attempt->record);
    } else if (attempt->verdict == IDEM_UNKNOWN) {
        ledger_note(/* durable= */ false, "U %s %llu %ld", key,
                    (unsigned long long)attempt->fence, (long)getpid());
    }
}

void worker_complain(const char *key, const char *doing,
                     const struct idem_error *error)
{
    (void)fprintf(stderr, "worker: %s %s: %s: %s\n", doing, key,
                  idem_error_name(error->code), error->text);
}

int worker_open(struct worker *w, unsigned flags)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_error error = {0};
    char url[600];

    (void)snprintf(url, sizeof(url), "sqlite:%s", w->path);
    options.flags = flags;
    options.timeout_ms = 60000;
    if (idem_open(url, &options, &w->store, &error) != 0) {
        worker_complain(w->path, "open", &error);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct worker w = {.keys = argv + 5, .keys_len = (size_t)(argc - 5)};
    size_t i;

    if (argc < 5 || getrandom(&w.random, sizeof(w.random), 0) < 0) {
        return 2;
    }
    w.random |= 1;
    w.path = argv[2];
    w.len = strtoul(argv[4], NULL, 10);
    ledger_open(argv[3]);
    for (i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        if (strcmp(roles[i].name, argv[1]) == 0) {
            w.style = roles[i].style;
            return roles[i].run(&w);
        }
    }
    return 2;
}
