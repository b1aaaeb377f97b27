/* Making the table: key, index, TTL, paid by request. */
#include "aws/dynamodb/layout/layout.h"
#include "aws/dynamodb/table/admin.h"
#include "aws/dynamodb/table/schema.h"
#include "base/host.h"
#include "core/error.h"

#include <idem/dynamodb.h>

enum {
    ACTIVE_MS = 120 * 1000,
    POLL_MS = 500,
};

/* 1: made; 0: it is there already; or a code. */
static int create(struct idem__admin *admin, struct idem_error *error)
{
    struct idem__schema schema;
    struct idem__answer answer;
    int rc = 1;

    idem__schema_of(&admin->store->env.table, &schema);
    idem__admin_begin(admin);
    idem__buffer_str(&admin->out, ",\"BillingMode\":\"PAY_PER_REQUEST\"");
    idem__schema_put(&admin->out, &schema);
    idem__buffer_str(&admin->out, "}");
    idem__admin_call(admin, IDEM__TARGET("CreateTable"), true, &answer);
    if (answer.said != IDEM__SAID_OK) {
        rc = strstr(answer.error.text, "ResourceInUseException") != NULL
                 ? 0
                 : idem__error(error, answer.error.code, "%s",
                               answer.error.text);
    }
    idem__answer_finish(&answer);
    return rc;
}

/* Describes: the text of @member in @object of the answer, or NULL. The caller
 * finishes *@ret_answer. */
static const char *describe(struct idem__admin *admin, const char *target,
                            const char *object, const char *member,
                            struct idem__answer *ret_answer)
{
    json_object *described;
    json_object *text;

    idem__admin_begin(admin);
    idem__buffer_str(&admin->out, "}");
    idem__admin_call(admin, target, true, ret_answer);
    if (ret_answer->said != IDEM__SAID_OK ||
        !json_object_object_get_ex(ret_answer->body, object, &described) ||
        !json_object_object_get_ex(described, member, &text) ||
        !json_object_is_type(text, json_type_string)) {
        return NULL;
    }
    return json_object_get_string(text);
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
            return idem__error(error, IDEM_EUNAVAILABLE,
                               "the table was made and is not active yet: try "
                               "again in a minute");
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
                         "the table is there, but its TTL cannot be set: %s",
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
    if (rc >= 0) {
        created = rc == 1;
        rc = wait_active(&admin, ret_error);
    }
    if (rc == 0) {
        rc = enable_ttl(&admin, ret_error);
    }
    if (rc == 0 && ret_created != NULL) {
        *ret_created = created;
    }
    idem__admin_close(&admin);
    return rc;
}
