/* A program on libidem, as it is killed.
 *
 *     worker ROLE PATH LEDGER LEN KEY...
 */
#include "worker.h"

#include "base/crash.h"
#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const struct {
    const char *name;
    int (*run)(struct worker *w);
    enum style style;
    bool opens; /* The file, by itself. */
    unsigned flags;
} roles[] = {
    {"work", role_work, STYLE_ANY, false, 0},
    {"complete", role_work, STYLE_COMPLETE, false, 0},
    {"release", role_work, STYLE_RELEASE, false, 0},
    {"renew", role_work, STYLE_RENEW, false, 0},
    {"expire", role_work, STYLE_EXPIRE, false, 0},
    {"threads", role_threads, STYLE_ANY, false, 0},
    {"batch", role_batch, STYLE_ANY, false, 0},
    {"chain", role_chain, STYLE_ANY, false, 0},
    {"abandon", role_abandon, STYLE_ANY, false, IDEM_OPEN_THREAD},
    {"purge", role_purge, STYLE_ANY, false, 0},
    {"in", role_in, STYLE_ANY, true, 0},
    {"open", role_open, STYLE_ANY, false, 0},
    {"leave", role_leave, STYLE_ANY, false, 0},
    {"restore", role_restore, STYLE_ANY, true, 0},
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

static void note(bool durable, const char *what, const char *key,
                 uint64_t fence, const char *id)
{
    ledger_note(durable, "%s %s %llu %ld %s", what, key,
                (unsigned long long)fence, (long)getpid(), id);
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
        note(/* durable= */ true, "E", key, attempt->fence, "");
    }
    IDEM__CRASH_POINT("worker/after-effect");
}

void worker_ended(const char *key, const struct idem_attempt *attempt,
                  const char *what, const char *id)
{
    note(/* durable= */ true, what, key, attempt->fence, id);
}

void worker_note(const char *key, const struct idem_attempt *attempt)
{
    struct idem_slice bytes = attempt->record->result.bytes;
    char id[PRODUCT_ID] = "";
    bool whole = attempt->verdict == IDEM_REPLAY &&
                 product_check(bytes.base, bytes.len, id);

    if (attempt->verdict == IDEM_REPLAY || attempt->verdict == IDEM_UNKNOWN) {
        note(/* durable= */ false,
             attempt->verdict == IDEM_UNKNOWN ? "U"
             : whole                          ? "R"
                                              : "X",
             key, attempt->record->fence, whole ? id : "");
    }
}

void worker_product(const struct worker *w, const struct idem_attempt *attempt,
                    struct product *ret_product)
{
    struct product *p = ret_product;

    *p = (struct product){.bytes = malloc(w->len + 256),
                          .outcome = {.status = IDEM_STATUS_COMPLETED}};
    if (p->bytes == NULL) {
        abort();
    }
    product_id(attempt->fence, p->id);
    p->outcome.result.bytes =
        idem_bytes(p->bytes,
                   product_make(p->id, w->len, p->bytes, w->len + 256));
}

void worker_product_free(struct product *product)
{
    free(product->bytes);
    product->bytes = NULL;
}

void worker_complain(const char *key, const char *doing,
                     const struct idem_error *error)
{
    (void)fprintf(stderr, "worker: %s %s: %s: %s\n", doing, key,
                  idem_error_name(error->code), error->text);
}

static int open_store(struct worker *w, unsigned flags)
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
    int rc = 2;
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
            rc = roles[i].opens ? 0 : open_store(&w, roles[i].flags);
            rc = rc != 0 ? rc : roles[i].run(&w);
            idem_close(w.store);
            return rc;
        }
    }
    return rc;
}
