/* A little before its caller stops waiting; one that nobody waits for has that long
 * again. */
#include "deadline.h"

#include "host.h"
#include "queue/op.h"

enum {
    TRY_MIN_MS = 1000,
};

int64_t deadline_mono_ms(const struct world *w, const struct flight *f)
{
    return host_boot_ms(w, f->client->host);
}

int64_t deadline_of(const struct world *w, const struct flight *f)
{
    int64_t timeout_ms = w->config.timeout_ms;
    int64_t early_ms = timeout_ms / 10 < 200 ? timeout_ms / 10 : 200;

    if (f->op == NULL || f->op->state == IDEM_OP_DETACHED) {
        return f->copy->deadline_ms + timeout_ms;
    }
    return f->copy->deadline_ms - early_ms;
}

int64_t deadline_of_try(const struct world *w, const struct flight *f)
{
    int64_t try_ms = w->config.timeout_ms / 3;
    int64_t end_ms = deadline_of(w, f);

    try_ms =
        deadline_mono_ms(w, f) + (try_ms < TRY_MIN_MS ? TRY_MIN_MS : try_ms);
    return try_ms < end_ms ? try_ms : end_ms;
}

int64_t deadline_when(const struct world *w, const struct flight *f,
                      int64_t mono_ms)
{
    int64_t at = host_when(f->client->host, mono_ms);

    return at > w->now ? at : w->now + 1;
}
