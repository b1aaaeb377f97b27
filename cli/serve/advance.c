/* Moves the time of a store in memory, for the tests of clients. */
#include "base/host.h"
#include "serve/attempts.h"
#include "serve/calls.h"
#include "serve/methods.h"

#include <stdio.h>

int serve_clock(void *ctx, struct idem_clock_reading *ret_reading)
{
    const struct serve *serve = ctx;
    int rc = idem__host_clock(/* ctx= */ NULL, ret_reading);

    ret_reading->wall_ms += serve->ahead_ms;
    ret_reading->boot_ms += serve->ahead_ms;
    return rc;
}

static void check(const struct serve *serve, struct serve_params *p)
{
    struct idem_error *error = &p->m->error;
    const char *name = serve->store->ops->name;

    if (strcmp(name, "memory") != 0) {
        error->code = IDEM_EINVALID;
        (void)snprintf(error->text, sizeof(error->text),
                       "advance: the time of this store (%s) cannot be moved; "
                       "use memory:",
                       name);
    } else if (p->advance_ms > IDEM_DURATION_MAX_MS - serve->ahead_ms) {
        serve_param_refuse(p->m, "ms", "a hundred years in total");
    }
}

/* To the server, and to the store, the machine was suspended for so long. Earlier requests
 * are done first. By the time of the answer, clients know which attempts are lost,
 * and every begin that waits has looked again. */
void serve_advance(struct serve_call *call, struct serve_params *p)
{
    struct serve *serve = call->serve;
    struct serve_call *parked;

    check(serve, p);
    if (p->m->code != 0 || p->m->error.code != 0) {
        return;
    }
    serve_calls_run(serve);
    serve->ahead_ms += p->advance_ms;
    call->conn->heard_ms = serve_now_ms(serve);
    serve_attempts_due(serve, serve_now_ms(serve));
    for (parked = serve->parked; parked != NULL; parked = parked->next_parked) {
        parked->due_ms = 0;
    }
    serve_calls_due(serve, serve_now_ms(serve));
    serve_calls_run(serve);
    (void)serve_answer(call);
    serve_reply(call);
}
