/* Blocking requests about the table itself. */
#include "aws/dynamodb/table/table.h"

#include "aws/dynamodb/layout/layout.h"
#include "base/host.h"
#include "core/error.h"

#include <idem/dynamodb.h>

enum {
    TRIES_MAX = 5,
    PAUSE_MS = 200,
    /* To create a table may take the service a while. A caller that only reads wants to
     * learn soon that the service is unreachable. */
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

void idem__admin_refusal(const struct idem__admin *admin, char name[96])
{
    const struct idem__aws_request *request = &admin->request;
    struct idem__aws_error error = {.type = ""};

    if (request->outcome == IDEM__AWS_ANSWERED && request->status != 200) {
        idem__aws_error_parse(request->status, request->error_type,
                              idem_bytes(request->answer, request->answer_len),
                              &error);
    }
    (void)strcpy(name, error.type);
}

/* ---- Creating the table: key, index, TTL, billed per request ---- */

enum {
    ACTIVE_MS = 120 * 1000,
    POLL_MS = 500,
};

/* Returns the text of @member in @object of the answer to a request that describes, or NULL.
 * The caller finishes *@ret_answer. */
static const char *describe(struct idem__admin *admin, const char *target,
                            const char *object, const char *member,
                            struct idem__answer *ret_answer)
{
    json_object *text;

    idem__admin_begin(admin);
    idem__buffer_str(&admin->out, "}");
    idem__admin_call(admin, target, true, ret_answer);
    if (ret_answer->said != IDEM__SAID_OK) {
        return NULL;
    }
    text = idem__json_member(idem__json_member(ret_answer->body, object,
                                               json_type_object),
                             member, json_type_string);
    return text == NULL ? NULL : json_object_get_string(text);
}

/* Returns 1 if the table was created, 0 if it existed, or a code. Looks first: a CreateTable
 * that is sent again after a lost answer meets its own table. (Of two processes that create
 * the same table at once, both may return 1.) */
static int create(struct idem__admin *admin, struct idem_error *error)
{
    struct idem__schema schema;
    struct idem__answer answer;
    char name[96];
    int rc = 1;

    (void)describe(admin, IDEM__TARGET("DescribeTable"), "Table", "TableStatus",
                   &answer);
    idem__admin_refusal(admin, name);
    if (strcmp(name, "ResourceNotFoundException") != 0) {
        rc = answer.said == IDEM__SAID_OK
                 ? 0
                 : idem__error(error, answer.error.code, "%s",
                               answer.error.text);
    }
    idem__answer_finish(&answer);
    if (rc != 1) {
        return rc;
    }
    idem__schema_of(&admin->store->env.table, &schema);
    idem__admin_begin(admin);
    idem__buffer_str(&admin->out, ",\"BillingMode\":\"PAY_PER_REQUEST\"");
    idem__schema_put(&admin->out, &schema);
    idem__buffer_str(&admin->out, "}");
    idem__admin_call(admin, IDEM__TARGET("CreateTable"), true, &answer);
    idem__admin_refusal(admin, name);
    if (answer.said != IDEM__SAID_OK &&
        strcmp(name, "ResourceInUseException") != 0) {
        rc = idem__error(error, answer.error.code, "%s", answer.error.text);
    }
    idem__answer_finish(&answer);
    return rc;
}

static int wait_active(struct idem__admin *admin, struct idem_error *error)
{
    const struct idem_host *host = &admin->store->remote.base.options.host;
    int64_t until_ms = idem__time_add(idem__mono_ms(), ACTIVE_MS);

    for (;;) {
        struct idem__answer answer;
        const char *status = describe(admin, IDEM__TARGET("DescribeTable"),
                                      "Table", "TableStatus", &answer);
        bool active = status != NULL && strcmp(status, "ACTIVE") == 0;

        idem__answer_finish(&answer);
        if (active) {
            return 0;
        }
        if (idem__mono_ms() >= until_ms) {
            return idem__error(
                error, IDEM_EUNAVAILABLE,
                "the table was created, but is not active yet: try again in a "
                "minute");
        }
        host->sleep(host->ctx, POLL_MS);
    }
}

static int enable_ttl(struct idem__admin *admin, struct idem_error *error)
{
    struct idem__answer answer;
    const char *status =
        describe(admin, IDEM__TARGET("DescribeTimeToLive"),
                 "TimeToLiveDescription", "TimeToLiveStatus", &answer);
    bool enabled = status != NULL && strncmp(status, "ENABL", 5) == 0;
    int rc = 0;

    idem__answer_finish(&answer);
    if (enabled) {
        return 0;
    }
    idem__admin_begin(admin);
    idem__buffer_str(&admin->out, ",\"TimeToLiveSpecification\":{"
                                  "\"Enabled\":true,"
                                  "\"AttributeName\":\"");
    idem__buffer_str(&admin->out, idem__layout_ttl(&admin->store->env.table));
    idem__buffer_str(&admin->out, "\"}}");
    idem__admin_call(admin, IDEM__TARGET("UpdateTimeToLive"), true, &answer);
    if (answer.said != IDEM__SAID_OK) {
        rc = idem__error(error, answer.error.code,
                         "the table exists, but its TTL cannot be set: %s",
                         answer.error.text);
    }
    idem__answer_finish(&answer);
    return rc;
}

int idem_dynamodb_create(const char *place, bool *ret_created,
                         struct idem_error *ret_error)
{
    struct idem__admin admin;
    bool created = false;
    int rc = idem__admin_open(place, &admin, ret_error);

    if (rc != 0) {
        return rc;
    }
    rc = create(&admin, ret_error);
    if (rc < 0) {
        goto done;
    }
    created = rc == 1;
    rc = wait_active(&admin, ret_error);
    if (rc != 0) {
        goto done;
    }
    rc = enable_ttl(&admin, ret_error);
    if (rc == 0 && ret_created != NULL) {
        *ret_created = created;
    }

done:
    idem__admin_close(&admin);
    return rc;
}
