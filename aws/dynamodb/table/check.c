/* Checks a table for its use as a store, and the permissions to use it. */
#include "core/error.h"
#include "aws/dynamodb/table/table.h"
#include "aws/dynamodb/layout/layout.h"

#include <idem/dynamodb.h>
#include <stdio.h>

struct check {
    struct idem__findings to;
    struct idem__admin admin;
    struct idem__table_check table;
};

/* ---- Asking ---- */

/* Sends {"TableName":"..." and @rest}. */
static void ask(struct check *check, const char *target, const char *rest,
                struct idem__answer *ret_answer)
{
    idem__admin_begin(&check->admin);
    idem__buffer_str(&check->admin.out, rest);
    idem__buffer_str(&check->admin.out, "}");
    idem__admin_call(&check->admin, target, /* safe= */ true, ret_answer);
}

/* ---- The table ---- */

enum described {
    DESCRIBED,
    NOT_TOLD, /* We have no permission to describe it; other checks go on. */
    NO_USE,   /* No other check could succeed. */
};

static bool is_denied_only(const char *name)
{
    return strncmp(name, "AccessDenied", strlen("AccessDenied")) == 0;
}

static enum described explain(struct check *check,
                              const struct idem__answer *answer)
{
    const char *table = check->table.place->table.name;
    char name[96];

    idem__admin_refusal(&check->admin, name);
    if (strcmp(name, "ResourceNotFoundException") == 0) {
        idem__found(&check->to, IDEM_GRADE_BAD, "table", check->table.create,
                    "no table %s in %s", table, check->table.region);
        return NO_USE;
    }
    if (is_denied_only(name)) {
        idem__found(&check->to, IDEM_GRADE_WARN, "table",
                    "Allow dynamodb:DescribeTable, or check with the "
                    "credentials of an operator.",
                    "these credentials may not describe %s: its key, its "
                    "index, its replicas and its protection were not checked",
                    table);
        return NOT_TOLD;
    }
    if (answer->error.code == IDEM_EDENIED) {
        idem__found_error(&check->to, "credentials",
                          "Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and "
                          "AWS_SESSION_TOKEN to credentials that the service "
                          "knows.",
                          &answer->error);
    } else {
        idem__found_error(
            &check->to, "service",
            "Check the endpoint and the region, the network and its proxies.",
            &answer->error);
    }
    return NO_USE;
}

static enum described describe_table(struct check *check)
{
    struct idem__answer answer;
    json_object *table;
    enum described told;

    ask(check, IDEM__TARGET("DescribeTable"), "", &answer);
    if (answer.said == IDEM__SAID_OK &&
        json_object_object_get_ex(answer.body, "Table", &table)) {
        idem__table_check_table(&check->table, table);
        told = DESCRIBED;
    } else {
        if (answer.said == IDEM__SAID_OK) {
            (void)idem__error(&answer.error, IDEM_ECONFIG,
                              "the service at this endpoint is not DynamoDB");
        }
        told = explain(check, &answer);
    }
    idem__answer_finish(&answer);
    return told;
}

/* ---- Descriptions of their own: TTL and backups ---- */

static void describe(struct check *check, const char *target,
                     const char *action, const char *about, const char *object,
                     void (*examine)(const struct idem__table_check *,
                                     json_object *))
{
    struct idem__answer answer;
    char name[96];
    char mend[160];

    ask(check, target, "", &answer);
    idem__admin_refusal(&check->admin, name);
    if (answer.said == IDEM__SAID_OK) {
        json_object *described = NULL;

        (void)json_object_object_get_ex(answer.body, object, &described);
        examine(&check->table, described);
    } else if (is_denied_only(name)) {
        (void)snprintf(mend, sizeof(mend),
                       "Allow dynamodb:%s, or check with the credentials of an "
                       "operator.",
                       action);
        idem__found(&check->to, IDEM_GRADE_WARN, about, mend,
                    "not checked: these credentials lack the permission");
    } else {
        idem__found(&check->to, IDEM_GRADE_WARN, about, /* mend= */ NULL,
                    "not checked: %.200s", answer.error.text);
    }
    idem__answer_finish(&answer);
}

static void describe_rest(struct check *check)
{
    describe(check, IDEM__TARGET("DescribeTimeToLive"), "DescribeTimeToLive",
             "ttl", "TimeToLiveDescription", idem__table_check_ttl);
    describe(check, IDEM__TARGET("DescribeContinuousBackups"),
             "DescribeContinuousBackups", "backups",
             "ContinuousBackupsDescription", idem__table_check_backups);
}

/* ---- Permissions ---- */

/* No item of ours has this id. Even if another one has it, the condition cannot hold. */
#define NO_KEY "{\"id\":{\"S\":\"idem-store-check\"}}"
#define NEVER                                                                  \
    ",\"ConditionExpression\":"                                                \
    "\"attribute_exists(id) AND attribute_not_exists(id)\""

/* A permission, and the request that tests it: @rest follows the name of the table, or @keys
 * are a batch for the table, or it is a page of records (@lists). */
struct right {
    const char *target;
    const char *rest;
    const char *keys;
    const char *serves;
    bool needs_index;
    /* Not only operators need it, but programs that run and replay. */
    bool everybody;
    bool lists;
    bool deletes; /* Everybody needs it if the layout deletes released items. */
};

static const struct right rights[] = {
    {.target = IDEM__TARGET("GetItem"),
     .rest = ",\"Key\":" NO_KEY ",\"ConsistentRead\":true",
     .serves = "to look a key up",
     .everybody = true},
    {.target = IDEM__TARGET("PutItem"),
     .rest = ",\"Item\":" NO_KEY NEVER,
     .serves = "to begin and to end",
     .everybody = true},
    {.target = IDEM__TARGET("BatchGetItem"),
     .keys = "{\"ConsistentRead\":true,\"Keys\":[" NO_KEY "]}",
     .serves = "to replay large results",
     .everybody = true},
    {.target = IDEM__TARGET("BatchWriteItem"),
     .keys = "[{\"DeleteRequest\":{\"Key\":" NO_KEY "}}]",
     .serves = "to record large results",
     .everybody = true},
    {.target = IDEM__TARGET("Query"),
     .rest = ",\"IndexName\":\"open\",\"Limit\":1,"
             "\"KeyConditionExpression\":\"#o = :o\","
             "\"ExpressionAttributeNames\":{\"#o\":\"open\"},"
             "\"ExpressionAttributeValues\":{\":o\":{\"S\":\"check\"}}",
     .serves = "to list what is open (on the index \"open\")",
     .needs_index = true},
    {.target = IDEM__TARGET("Scan"),
     .serves = "to list, purge and export",
     .lists = true},
    {.target = IDEM__TARGET("DeleteItem"),
     .rest = ",\"Key\":" NO_KEY NEVER,
     .serves = "to purge",
     .deletes = true},
};

static void write_batch(struct check *check, const char *keys)
{
    struct idem__buffer *out = &check->admin.out;

    out->len = 0;
    idem__buffer_str(out, "{\"RequestItems\":{");
    idem__json_string(out, idem_str(check->table.place->table.name));
    idem__buffer_str(out, ":");
    idem__buffer_str(out, keys);
    idem__buffer_str(out, "}}");
}

static void tell_right(struct check *check, const struct right *right,
                       const char *action, const struct idem__answer *answer)
{
    bool drops =
        right->deletes && idem__layout_of(&check->table.place->table)->drops;
    const char *serves = drops ? "to release, and to purge" : right->serves;
    bool everybody = right->everybody || drops;
    enum idem_grade missing = everybody ? IDEM_GRADE_BAD : IDEM_GRADE_WARN;
    char name[96];
    char mend[160];

    idem__admin_refusal(&check->admin, name);
    if (answer->said == IDEM__SAID_OK || answer->said == IDEM__SAID_REFUSED) {
        idem__found(&check->to, IDEM_GRADE_OK, "right", /* mend= */ NULL,
                    "dynamodb:%s, %s", action, serves);
    } else if (is_denied_only(name)) {
        (void)snprintf(mend, sizeof(mend),
                       "Allow dynamodb:%s on the table%s; see: idem store "
                       "template.",
                       action, right->needs_index ? "'s index" : "");
        idem__found(&check->to, missing, "right", mend,
                    "these credentials lack dynamodb:%s, %s%s", action, serves,
                    everybody ? "" : ", which is for operators");
    } else {
        idem__found(&check->to, missing, "right", /* mend= */ NULL,
                    "dynamodb:%s, %s: %.200s", action, serves,
                    answer->error.text);
    }
}

/* Writes a request with @rest, in which the key becomes that of the table's layout. */
static void write_rest(struct check *check, const char *rest)
{
    const struct idem__table_conf *table = &check->table.place->table;
    struct idem__buffer *out = &check->admin.out;
    const char *at = strstr(rest, NO_KEY);

    idem__admin_begin(&check->admin);
    if (at == NULL) {
        idem__buffer_str(out, rest);
    } else {
        idem__buffer_add(out, rest, (size_t)(at - rest));
        idem__layout_put_key(out, table, idem_str("idem-store-check"));
        idem__buffer_str(out, "}");
        idem__buffer_str(out, at + strlen(NO_KEY));
    }
    idem__buffer_str(out, "}");
}

/* False for a permission that the layout of the table does not need. */
static bool is_needed(const struct check *check, const struct right *right)
{
    const struct idem__table_conf *table = &check->table.place->table;

    return right->needs_index
               ? table->index
               : right->keys == NULL || idem__layout_of(table)->parts;
}

/* Writes the request that tests @right, and returns its target. */
static const char *write_right(struct check *check, const struct right *right)
{
    if (right->lists) {
        check->admin.out.len = 0;
        return idem__request_scan(&check->admin.out, &check->table.place->table,
                                  idem_bytes(NULL, 0), 1);
    }
    if (right->keys != NULL) {
        write_batch(check, right->keys);
    } else {
        write_rest(check, right->rest);
    }
    return right->target;
}

/* False: the table does not exist, so no other check could succeed. */
static bool check_right(struct check *check, const struct right *right)
{
    const char *target = write_right(check, right);
    struct idem__answer answer;
    char name[96];
    bool found;

    idem__admin_call(&check->admin, target, /* safe= */ true, &answer);
    idem__admin_refusal(&check->admin, name);
    found = strcmp(name, "ResourceNotFoundException") != 0;
    if (found) {
        tell_right(check, right, strchr(target, '.') + 1, &answer);
    } else {
        (void)explain(check, &answer);
    }
    idem__answer_finish(&answer);
    return found;
}

static void check_rights(struct check *check)
{
    bool more = true;
    size_t i;

    for (i = 0; more && i < sizeof(rights) / sizeof(rights[0]); i++) {
        if (is_needed(check, &rights[i])) {
            more = check_right(check, &rights[i]);
        }
    }
}

/* ---- The check ---- */

/* Every answer so far has reported the service's time. */
static void check_clock(struct check *check)
{
    struct idem_dynamodb_info info = IDEM_DYNAMODB_INFO_INIT;
    struct idem_error error;

    if (idem_dynamodb_inspect(&check->admin.store->remote.base, &info,
                              &error) == 0 &&
        info.clock_known) {
        idem__table_check_clock(&check->table, info.clock_off_ms,
                                info.clock_err_ms);
    } else {
        idem__found(&check->to, IDEM_GRADE_WARN, "clock", /* mend= */ NULL,
                    "the service does not report the time");
    }
}

static void check_all(struct check *check)
{
    if (describe_table(check) != NO_USE) {
        describe_rest(check);
        check_clock(check);
        check_rights(check);
    }
}

int idem_dynamodb_check(const char *place,
                        const struct idem_check_options *options,
                        idem_finding_fn *each, void *ctx,
                        struct idem_error *ret_error)
{
    struct idem_check_options checked;
    struct check check = {.to = {each, ctx}};
    int rc = idem__check_options(options, &checked, ret_error);

    if (rc == 0) {
        rc = idem__admin_open_readonly(place, &check.admin, ret_error);
    }
    if (rc != 0) {
        return rc;
    }
    idem__table_check_init(&check.table, &check.to, place,
                           &check.admin.store->place,
                           &check.admin.store->endpoint);
    check_all(&check);
    idem__admin_close(&check.admin);
    return 0;
}
