/* Checks the description of a table for its use as a store. */
#include "aws/dynamodb/table/table.h"

#include "aws/dynamodb/layout/layout.h"
#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    MEND_MAX = 2048,
    CLOCK_OFF_MAX_MS = 5000,
    HOST_CLOCK_OFF_MAX_MS = 1000,
};

/* ---- Reading ---- */

/* The text of the member @name; "": it is missing. */
static const char *text_of(json_object *object, const char *name)
{
    json_object *text = idem__json_member(object, name, json_type_string);

    return text == NULL ? "" : json_object_get_string(text);
}

static bool says(json_object *object, const char *name, const char *value)
{
    return strcmp(text_of(object, name), value) == 0;
}

static size_t length_of(json_object *list)
{
    return list == NULL ? 0 : json_object_array_length(list);
}

/* The object of @list whose @name is @value, or NULL. */
static json_object *find(json_object *list, const char *name, const char *value)
{
    size_t n = length_of(list);
    size_t i;

    for (i = 0; i < n; i++) {
        json_object *each = json_object_array_get_idx(list, i);

        if (says(each, name, value)) {
            return each;
        }
    }
    return NULL;
}

/* ---- Findings ---- */

void idem__table_check_init(struct idem__table_check *check,
                            const struct idem__findings *to,
                            const char *place_text,
                            const struct idem__place_conf *place,
                            const struct idem__aws_endpoint *endpoint)
{
    char own[128];
    size_t len;

    memset(check, 0, sizeof(*check));
    check->to = *to;
    check->place = place;
    check->region = endpoint->region;
    (void)snprintf(check->create, sizeof(check->create),
                   "idem store create --store 'dynamodb:%s'", place_text);
    (void)snprintf(check->purge, sizeof(check->purge),
                   "idem purge --store 'dynamodb:%s'", place_text);
    (void)snprintf(check->aws, sizeof(check->aws),
                   " --table-name %s --region %s", place->table.name,
                   endpoint->region);
    (void)snprintf(own, sizeof(own), "https://dynamodb.%s.amazonaws.com",
                   endpoint->region);
    if (strncmp(endpoint->url, own, strlen(own)) != 0) {
        len = strlen(check->aws);
        (void)snprintf(check->aws + len, sizeof(check->aws) - len,
                       " --endpoint-url '%s'", endpoint->url);
    }
}

static void good(const struct idem__table_check *check, const char *about,
                 const char *text)
{
    idem__found(&check->to, IDEM_GRADE_OK, about, /* mend= */ NULL, "%s", text);
}

/* Writes the command "aws dynamodb VERB --table-name ... REST". */
static const char *aws_line(const struct idem__table_check *check,
                            const char *verb, const char *rest,
                            char buf[MEND_MAX])
{
    (void)snprintf(buf, MEND_MAX, "aws dynamodb %s%s %s", verb, check->aws,
                   rest);
    return buf;
}

/* ---- The table ---- */

static void check_status(const struct idem__table_check *check,
                         json_object *table)
{
    const char *status = text_of(table, "TableStatus");
    const char *name = check->place->table.name;

    if (strcmp(status, "ACTIVE") == 0) {
        idem__found(&check->to, IDEM_GRADE_OK, "table", /* mend= */ NULL,
                    "%s in %s exists and is active", name, check->region);
    } else if (strcmp(status, "UPDATING") == 0) {
        idem__found(&check->to, IDEM_GRADE_OK, "table", /* mend= */ NULL,
                    "%s in %s exists, and its settings are changing", name,
                    check->region);
    } else if (strcmp(status, "CREATING") == 0) {
        idem__found(&check->to, IDEM_GRADE_BAD, "table",
                    "Wait a minute and check again.",
                    "%s in %s is being created and cannot be used yet", name,
                    check->region);
    } else {
        idem__found(&check->to, IDEM_GRADE_BAD, "table", check->create,
                    "%s in %s cannot be used: its status is %.60s", name,
                    check->region, status[0] == '\0' ? "unknown" : status);
    }
}

/* True if @holder, the table or one of its indexes, has exactly the key @parts. */
static bool has_key(json_object *holder, json_object *table,
                    const struct idem__schema_part *parts, size_t parts_len)
{
    json_object *schema =
        idem__json_member(holder, "KeySchema", json_type_array);
    json_object *types =
        idem__json_member(table, "AttributeDefinitions", json_type_array);
    size_t i;

    for (i = 0; i < parts_len; i++) {
        json_object *role = find(schema, "AttributeName", parts[i].name);
        json_object *type = find(types, "AttributeName", parts[i].name);

        if (!says(role, "KeyType", parts[i].role) ||
            !says(type, "AttributeType", parts[i].type)) {
            return false;
        }
    }
    return length_of(schema) == parts_len;
}

static void check_key(const struct idem__table_check *check, json_object *table)
{
    const struct idem__table_conf *conf = &check->place->table;
    struct idem__schema schema;
    const char *first, *second;

    idem__schema_of(conf, &schema);
    first = schema.key[0].name;
    second = schema.key_len == 2 ? schema.key[1].name : "";
    if (has_key(table, table, schema.key, schema.key_len)) {
        idem__found(&check->to, IDEM_GRADE_OK, "key", /* mend= */ NULL,
                    "the key is \"%s\", a string%s%s", first,
                    schema.key_len == 2 ? ", with the sort key " : "", second);
        return;
    }
    idem__found(&check->to, IDEM_GRADE_BAD, "key",
                idem__layout_of(conf)->fixed_names
                    ? "Name another table: this one is not idem's, and the key "
                      "of a table cannot be changed."
                    : "Name the attributes of this table in the store URL: "
                      "key-attr=NAME, or with sort-key-attr=NAME its "
                      "static-pk-value=TEXT.",
                "the key of the table is not \"%s\" (a string)%s%s", first,
                schema.key_len == 2 ? " with the sort key " : " alone", second);
}

/* Writes the command that creates the index. */
static const char *index_line(const struct idem__table_check *check,
                              const struct idem__schema_index *index,
                              char buf[MEND_MAX])
{
    struct idem__buffer rest = {.base = NULL};
    size_t i;

    idem__buffer_str(&rest, "--attribute-definitions ");
    for (i = 0; i < 2; i++) {
        idem__buffer_str(&rest, "AttributeName=");
        idem__buffer_str(&rest, index->key[i].name);
        idem__buffer_str(&rest, ",AttributeType=");
        idem__buffer_str(&rest, index->key[i].type);
        idem__buffer_str(&rest, " ");
    }
    idem__buffer_str(&rest, "--global-secondary-index-updates '[{\"Create\":");
    idem__schema_put_index(&rest, index);
    idem__buffer_add(&rest, "}]'", sizeof("}]'"));
    (void)aws_line(check, "update-table",
                   rest.failed ? "" : (const char *)rest.base, buf);
    idem__buffer_free(&rest);
    return buf;
}

static void check_no_index(const struct idem__table_check *check,
                           const struct idem__schema_index *index)
{
    char mend[MEND_MAX];

    if (!check->place->table.index) {
        good(check, "index", "none, as the store URL has index=off");
        return;
    }
    idem__found(
        &check->to, IDEM_GRADE_BAD, "index", index_line(check, index, mend),
        "the index \"open\", from which \"idem list\" reads open records, does "
        "not exist; to do without it, put index=off into the store URL of "
        "every user");
}

static void check_index(const struct idem__table_check *check,
                        json_object *table)
{
    struct idem__schema schema;
    json_object *index;
    const char *status;
    char mend[MEND_MAX];

    idem__schema_of(&check->place->table, &schema);
    index = find(idem__json_member(table, "GlobalSecondaryIndexes",
                                   json_type_array),
                 "IndexName", schema.index.name);
    status = text_of(index, "IndexStatus");
    if (index == NULL) {
        check_no_index(check, &schema.index);
    } else if (!has_key(index, table, schema.index.key, 2)) {
        idem__found(
            &check->to, IDEM_GRADE_BAD, "index",
            aws_line(check, "update-table",
                     "--global-secondary-index-updates "
                     "'[{\"Delete\":{\"IndexName\":\"open\"}}]'",
                     mend),
            "the key of the index \"open\" is not \"open\" (a string) "
            "and \"since\" (a number): delete it, and check again to see the "
            "command that creates it");
    } else if (!check->place->table.index) {
        idem__found(
            &check->to, IDEM_GRADE_WARN, "index",
            "Remove index=off from the store URL, or give it to every user and "
            "delete the index.",
            "the table has an index, but the store URL has index=off: users of "
            "the index miss the records that are written this way");
    } else if (strcmp(status, "ACTIVE") == 0 || status[0] == '\0') {
        good(check, "index", "the index \"open\" exists");
    } else {
        idem__found(
            &check->to, IDEM_GRADE_WARN, "index",
            "Wait until it is active, and check again.",
            "the index \"open\" is %.60s: until it is active, lists of open "
            "records may be incomplete or fail",
            status);
    }
}

static void check_billing(const struct idem__table_check *check,
                          json_object *table)
{
    json_object *summary =
        idem__json_member(table, "BillingModeSummary", json_type_object);
    char mend[MEND_MAX];

    if (says(summary, "BillingMode", "PAY_PER_REQUEST")) {
        good(check, "billing", "billed per request");
        return;
    }
    idem__found(
        &check->to, IDEM_GRADE_WARN, "billing",
        aws_line(check, "update-table", "--billing-mode PAY_PER_REQUEST", mend),
        "the table has a fixed capacity: requests beyond it, or beyond that of "
        "its index, are throttled and retried, and then fail to begin");
}

/* ---- Replicas ---- */

/* Lists the regions of @replicas but our own, as "eu-west-1, us-east-1", and the first. */
static void list_regions(const struct idem__table_check *check,
                         json_object *replicas, char names[512],
                         const char **ret_first)
{
    size_t n = length_of(replicas);
    size_t i;

    names[0] = '\0';
    *ret_first = NULL;
    for (i = 0; i < n; i++) {
        const char *region =
            text_of(json_object_array_get_idx(replicas, i), "RegionName");
        size_t len = strlen(names);

        if (region[0] == '\0' || strcmp(region, check->region) == 0) {
            continue;
        }
        (void)snprintf(names + len, 512 - len, "%s%.60s", len > 0 ? ", " : "",
                       region);
        if (*ret_first == NULL) {
            *ret_first = region;
        }
    }
}

static void check_lagging(const struct idem__table_check *check,
                          const char *regions, const char *first)
{
    const char *writer = check->place->writer;
    char rest[256];
    char mend[MEND_MAX];

    if (writer[0] != '\0') {
        idem__found(
            &check->to, IDEM_GRADE_WARN, "replicas",
            "Give every user of the table a URL with writer=, and "
            "before another region takes over, stop all of them.",
            "replicas in %s, where the last writer wins; the store URL lets "
            "only %s write",
            regions, writer);
        return;
    }
    (void)snprintf(rest, sizeof(rest),
                   "--replica-updates '[{\"Delete\":{\"RegionName\":"
                   "\"%.60s\"}}]'",
                   first == NULL ? "REGION" : first);
    idem__found(
        &check->to, IDEM_GRADE_BAD, "replicas",
        aws_line(check, "update-table", rest, mend),
        "replicas in %s, where the last of two writes wins whatever its "
        "condition: an operation can run once in each region; delete them, or "
        "make a global table with strong consistency, or let only one region "
        "write and put writer=REGION into the store URL of every user",
        regions);
}

static void check_replicas(const struct idem__table_check *check,
                           json_object *table)
{
    char regions[512];
    const char *first;

    list_regions(check, idem__json_member(table, "Replicas", json_type_array),
                 regions, &first);
    /* A global table of 2017 does not list its replicas here. */
    if (first == NULL && says(table, "GlobalTableVersion", "2017.11.29")) {
        check_lagging(check, "other regions", NULL);
    } else if (first == NULL) {
        good(check, "replicas", "the table is in one region");
    } else if (says(table, "MultiRegionConsistency", "STRONG")) {
        idem__found(&check->to, IDEM_GRADE_OK, "replicas", /* mend= */ NULL,
                    "replicas in %s, with strong consistency", regions);
    } else {
        check_lagging(check, regions, first);
    }
}

static void check_protection(const struct idem__table_check *check,
                             json_object *table)
{
    char mend[MEND_MAX];

    if (json_object_get_boolean(idem__json_member(table,
                                                  "DeletionProtectionEnabled",
                                                  json_type_boolean))) {
        good(check, "protection", "the table cannot be deleted by accident");
        return;
    }
    idem__found(
        &check->to, IDEM_GRADE_WARN, "protection",
        aws_line(check, "update-table", "--deletion-protection-enabled", mend),
        "the table can be deleted by accident, and every operation would "
        "run again");
}

/* Reports the promises of idem that the layout of another library does not keep. */
static void check_layout(const struct idem__table_check *check)
{
    const struct idem__table_conf *conf = &check->place->table;
    const char *const *each = idem__layout_of(conf)->gives_up;

    for (; *each != NULL; each++) {
        idem__found(&check->to, IDEM_GRADE_WARN, "layout",
                    "See docs/layouts.md; idem export --open | idem import "
                    "moves the records to a table of idem's own.",
                    "%s: %s", idem__layout_of(conf)->name, *each);
    }
}

/* The index of the layout lock-token serves programs of the article, and not idem. */
static void check_status_index(const struct idem__table_check *check,
                               json_object *table)
{
    json_object *indexes =
        idem__json_member(table, "GlobalSecondaryIndexes", json_type_array);
    size_t n = length_of(indexes);
    struct idem__schema schema;
    size_t i;

    idem__schema_of(&check->place->table, &schema);
    for (i = 0; i < n; i++) {
        json_object *index = json_object_array_get_idx(indexes, i);

        if (has_key(index, table, schema.index.key, 2)) {
            idem__found(&check->to, IDEM_GRADE_OK, "index", /* mend= */ NULL,
                        "open locks are in the index \"%.80s\", which idem "
                        "does not need",
                        text_of(index, "IndexName"));
            return;
        }
    }
    good(check, "index", "none on the status, and idem needs none");
}

void idem__table_check_table(const struct idem__table_check *check,
                             json_object *table)
{
    const struct idem__layout_kind *kind =
        idem__layout_of(&check->place->table);

    check_status(check, table);
    check_key(check, table);
    if (kind->status_index) {
        check_status_index(check, table);
    } else if (kind->index) {
        check_index(check, table);
    }
    check_layout(check);
    check_billing(check, table);
    check_replicas(check, table);
    check_protection(check, table);
}

/* ---- TTL and backups ---- */

void idem__table_check_ttl(const struct idem__table_check *check,
                           json_object *ttl)
{
    const char *status = text_of(ttl, "TimeToLiveStatus");
    const char *attribute = text_of(ttl, "AttributeName");
    bool on = strcmp(status, "ENABLED") == 0 || strcmp(status, "ENABLING") == 0;
    char rest[512];
    char mend[MEND_MAX];
    const char *own = idem__layout_ttl(&check->place->table);

    if (on && strcmp(attribute, own) == 0) {
        idem__found(&check->to, IDEM_GRADE_OK, "ttl", /* mend= */ NULL,
                    "records past their retention are deleted by their "
                    "\"%s\"",
                    own);
    } else if (on) {
        (void)snprintf(rest, sizeof(rest),
                       "--time-to-live-specification "
                       "Enabled=false,AttributeName='%.255s'",
                       attribute);
        idem__found(
            &check->to, IDEM_GRADE_WARN, "ttl",
            aws_line(check, "update-time-to-live", rest, mend),
            "TTL is on \"%.255s\" and not on \"%s\", so no record is deleted: "
            "switch that off, and an hour later run \"idem store create\"",
            attribute, own);
    } else if (strcmp(status, "DISABLING") == 0) {
        idem__found(&check->to, IDEM_GRADE_WARN, "ttl",
                    "Wait an hour and check again.",
                    "TTL is being switched off");
    } else {
        idem__found(
            &check->to, IDEM_GRADE_WARN, "ttl", check->create,
            "TTL is off: records past their retention stay, and cost storage, "
            "until \"idem purge\" deletes them");
    }
}

void idem__table_check_backups(const struct idem__table_check *check,
                               json_object *backups)
{
    json_object *recovery =
        idem__json_member(backups, "PointInTimeRecoveryDescription",
                          json_type_object);
    char mend[MEND_MAX];

    if (says(recovery, "PointInTimeRecoveryStatus", "ENABLED")) {
        good(check, "backups", "point-in-time recovery is on");
        return;
    }
    idem__found(
        &check->to, IDEM_GRADE_WARN, "backups",
        aws_line(check, "update-continuous-backups",
                 "--point-in-time-recovery-specification "
                 "PointInTimeRecoveryEnabled=true",
                 mend),
        "point-in-time recovery is off: lost records cannot be restored");
}

/* ---- The clock ---- */

void idem__table_check_clock(const struct idem__table_check *check,
                             int64_t off_ms, int64_t err_ms)
{
    const char *way = off_ms < 0 ? "earlier than" : "later than";
    int64_t off = off_ms < 0 ? -off_ms : off_ms;
    int64_t certain = off > err_ms ? off - err_ms : 0;
    char span[IDEM__SPAN_MAX];

    idem__span((off + 500) / 1000 * 1000, span);
    if (check->place->host_clock && certain > HOST_CLOCK_OFF_MAX_MS) {
        idem__found(
            &check->to, IDEM_GRADE_BAD, "clock", "timedatectl set-ntp true",
            "this machine's clock is %s %s the service's, but the store URL "
            "has clock=host: leases end early or late",
            span, way);
    } else if (certain > CLOCK_OFF_MAX_MS) {
        idem__found(&check->to, IDEM_GRADE_WARN, "clock",
                    "timedatectl set-ntp true",
                    "this machine's clock is %s %s the service's; idem "
                    "goes by the service's",
                    span, way);
    } else {
        idem__found(
            &check->to, IDEM_GRADE_OK, "clock", /* mend= */ NULL,
            "this machine's clock agrees with the service's within %lld ms",
            (long long)(off + err_ms));
    }
}
