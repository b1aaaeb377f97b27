/* Requests about the table itself, one at a time, blocking. */
#include "aws/dynamodb/table/admin.h"

#include "base/host.h"

#include <idem/dynamodb.h>

enum {
    TRIES_MAX = 5,
    PAUSE_MS = 200,
    /* A table that is made, or written, may take its time; who only looks wants
     * to know that the service is away. */
    TRY_MS = 10000,
    AGAIN_MS = 60000,
    LOOK_MS = 3000,
    LOOK_AGAIN_MS = 2000,
};

static int open_with(const char *place, unsigned flags,
                     struct idem__admin *ret_admin,
                     struct idem_error *ret_error)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_store *store;
    int rc;

    options.flags = flags;
    rc = idem_dynamodb_open(place, &options, &store, ret_error);
    if (rc == 0) {
        memset(ret_admin, 0, sizeof(*ret_admin));
        ret_admin->store = (struct idem__dynamodb_store *)store;
        ret_admin->try_ms = TRY_MS;
        ret_admin->again_ms = AGAIN_MS;
    }
    return rc;
}

int idem__admin_open(const char *place, struct idem__admin *ret_admin,
                     struct idem_error *ret_error)
{
    return open_with(place, /* flags= */ 0, ret_admin, ret_error);
}

int idem__admin_open_readonly(const char *place, struct idem__admin *ret_admin,
                              struct idem_error *ret_error)
{
    int rc = open_with(place, IDEM_OPEN_READONLY, ret_admin, ret_error);

    if (rc == 0) {
        ret_admin->try_ms = LOOK_MS;
        ret_admin->again_ms = LOOK_AGAIN_MS;
    }
    return rc;
}

void idem__admin_close(struct idem__admin *admin)
{
    idem__aws_request_finish(&admin->request);
    idem__buffer_free(&admin->out);
    idem_close(&admin->store->remote.base);
}

void idem__admin_begin(struct idem__admin *admin)
{
    admin->out.len = 0;
    idem__buffer_str(&admin->out, "{\"TableName\":");
    idem__json_string(&admin->out, idem_str(admin->store->env.table.name));
}

static void send_once(struct idem__admin *admin, const char *target)
{
    struct idem__aws_client *client = admin->store->client;

    admin->request.endpoint = &admin->store->endpoint;
    admin->request.target = target;
    admin->request.body = idem__buffer_slice(&admin->out);
    admin->request.deadline_ms = idem__time_add(idem__mono_ms(), admin->try_ms);
    idem__aws_submit(client, &admin->request);
    for (;;) {
        idem__aws_work(client);
        if (idem__aws_reap(client) != NULL) {
            return;
        }
        idem__aws_wait(client, admin->request.deadline_ms);
    }
}

void idem__admin_call(struct idem__admin *admin, const char *target, bool safe,
                      struct idem__answer *ret_answer)
{
    const struct idem_host *host = &admin->store->remote.base.options.host;
    int64_t until_ms = idem__time_add(idem__mono_ms(), admin->again_ms);
    unsigned tries;

    for (tries = 1;; tries++) {
        bool again;

        send_once(admin, target);
        idem__answer_read(&admin->request, admin->store->place.table.name,
                          ret_answer);
        again = ret_answer->said == IDEM__SAID_NOT_APPLIED ||
                (safe && ret_answer->said == IDEM__SAID_UNKNOWN);
        if (!again || tries == TRIES_MAX || idem__mono_ms() >= until_ms) {
            return;
        }
        idem__answer_finish(ret_answer);
        host->sleep(host->ctx, PAUSE_MS * tries);
    }
}
