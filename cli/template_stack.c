/* The table for CloudFormation, and for SAM. */
#include "cli.h"
#include "template_parts.h"
#include "yaml.h"

#include <stdarg.h>
#include <stdlib.h>

static const char table_text[] =
    "{\"Type\":\"AWS::DynamoDB::Table\","
    "\"DeletionPolicy\":\"Retain\",\"UpdateReplacePolicy\":\"Retain\","
    "\"Properties\":{\"TableName\":{\"Ref\":\"TableName\"},"
    "\"BillingMode\":\"PAY_PER_REQUEST\","
    "\"AttributeDefinitions\":["
    "{\"AttributeName\":\"id\",\"AttributeType\":\"S\"}],"
    "\"KeySchema\":[{\"AttributeName\":\"id\",\"KeyType\":\"HASH\"}],"
    "\"TimeToLiveSpecification\":"
    "{\"AttributeName\":\"ttl\",\"Enabled\":true},"
    "\"PointInTimeRecoverySpecification\":"
    "{\"PointInTimeRecoveryEnabled\":true},"
    "\"DeletionProtectionEnabled\":true}}";

static const char function_text[] =
    "{\"Type\":\"AWS::Serverless::Function\",\"Properties\":{"
    "\"CodeUri\":\"./function\",\"Handler\":\"bootstrap\","
    "\"Runtime\":\"provided.al2023\",\"Timeout\":60,"
    "\"Environment\":{\"Variables\":{}},\"Policies\":[]}}";

/* The embedded texts are well-formed: only memory can be lacking. */
static struct json_object *parse(const char *text)
{
    struct json_object *object = json_tokener_parse(text);

    if (object == NULL) {
        cli_say("out of memory");
        exit(CLI_INTERNAL);
    }
    return object;
}

static struct json_object *format_json(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

static struct json_object *format_json(const char *format, ...)
{
    struct json_object *object;
    va_list args;
    char *text;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) {
        text = NULL;
    }
    va_end(args);
    object = parse(text != NULL ? text : "");
    free(text);
    return object;
}

static struct json_object *member(struct json_object *object, const char *name)
{
    struct json_object *found = NULL;

    (void)json_object_object_get_ex(object, name, &found);
    return found;
}

static void put(struct json_object *object, const char *name,
                struct json_object *child)
{
    (void)json_object_object_add(object, name, child);
}

static void add_actions(struct json_object *to, const char *const *actions)
{
    for (; *actions != NULL; actions++) {
        (void)json_object_array_add(to, json_object_new_string(*actions));
    }
}

/* Takes @resource. @more may be NULL. */
static struct json_object *statement(const char *const *actions,
                                     const char *const *more,
                                     struct json_object *resource)
{
    struct json_object *made = parse("{\"Effect\":\"Allow\",\"Action\":[]}");

    add_actions(member(made, "Action"), actions);
    if (more != NULL) {
        add_actions(member(made, "Action"), more);
    }
    put(made, "Resource", resource);
    return made;
}

static struct json_object *table_arn(void)
{
    return parse("{\"Fn::GetAtt\":[\"IdemTable\",\"Arn\"]}");
}

static struct json_object *table_of(const struct cli_template *t)
{
    struct json_object *table = parse(table_text);
    struct json_object *properties = member(table, "Properties");
    struct json_object *attributes = member(properties, "AttributeDefinitions");

    if (t->index) {
        (void)json_object_array_add(
            attributes,
            parse("{\"AttributeName\":\"open\",\"AttributeType\":\"S\"}"));
        (void)json_object_array_add(
            attributes,
            parse("{\"AttributeName\":\"since\",\"AttributeType\":\"N\"}"));
        put(properties, "GlobalSecondaryIndexes", parse(cli_template_index));
    }
    return table;
}

/* Takes @first. */
static struct json_object *policy(const char *says, struct json_object *first)
{
    return format_json("{\"Type\":\"AWS::IAM::ManagedPolicy\",\"Properties\":{"
                       "\"Description\":\"%s\",\"PolicyDocument\":{"
                       "\"Version\":\"2012-10-17\",\"Statement\":[%s]}}}",
                       says, json_object_to_json_string(first));
}

static struct json_object *policy_of_one(const char *says,
                                         const char *const *actions,
                                         const char *const *more)
{
    struct json_object *first = statement(actions, more, table_arn());
    struct json_object *made = policy(says, first);

    (void)json_object_put(first);
    return made;
}

static struct json_object *operators_policy(const struct cli_template *t)
{
    struct json_object *made =
        policy_of_one(CLI_TEMPLATE_OPERATE_SAYS, cli_template_use,
                      cli_template_operate);
    struct json_object *document =
        member(member(made, "Properties"), "PolicyDocument");

    if (t->index) {
        (void)json_object_array_add(
            member(document, "Statement"),
            statement(cli_template_operate_index, /* more= */ NULL,
                      parse("{\"Fn::Sub\":\"${IdemTable.Arn}/index/open\"}")));
    }
    return made;
}

static struct json_object *store_of(const struct cli_template *t)
{
    return format_json("{\"Fn::Sub\":\"dynamodb://${IdemTable}"
                       "?region=${AWS::Region}%s\"}",
                       t->index ? "" : "&index=off");
}

static struct json_object *function_of(const struct cli_template *t)
{
    struct json_object *function = parse(function_text);
    struct json_object *properties = member(function, "Properties");
    struct json_object *document =
        parse("{\"Version\":\"2012-10-17\",\"Statement\":[]}");

    put(member(member(properties, "Environment"), "Variables"), "IDEM_STORE",
        store_of(t));
    (void)json_object_array_add(member(document, "Statement"),
                                statement(cli_template_use,
                                          cli_template_more(t), table_arn()));
    (void)json_object_array_add(member(properties, "Policies"), document);
    return function;
}

static void add_output(struct json_object *outputs, const char *name,
                       const char *says, struct json_object *value)
{
    struct json_object *output = format_json("{\"Description\":\"%s\"}", says);

    put(output, "Value", value);
    put(outputs, name, output);
}

static struct json_object *stack(const struct cli_template *t, bool sam)
{
    struct json_object *made =
        parse("{\"AWSTemplateFormatVersion\":\"2010-09-09\"}");
    struct json_object *resources = parse("{}");
    struct json_object *outputs = parse("{}");

    if (sam) {
        put(made, "Transform",
            json_object_new_string("AWS::Serverless-2016-10-31"));
    }
    put(made, "Description",
        json_object_new_string("A table for idem, and what its users may do."));
    put(made, "Parameters",
        format_json("{\"TableName\":{\"Type\":\"String\","
                    "\"Default\":\"%s\"}}",
                    t->table));
    put(made, "Resources", resources);
    put(resources, "IdemTable", table_of(t));
    if (sam) {
        put(resources, "Function", function_of(t));
    } else {
        put(resources, "IdemUse",
            policy_of_one(CLI_TEMPLATE_USE_SAYS, cli_template_use,
                          cli_template_more(t)));
    }
    put(resources, "IdemOperate", operators_policy(t));
    put(made, "Outputs", outputs);
    add_output(outputs, "IdemStore", "The value for IDEM_STORE.", store_of(t));
    return made;
}

void cli_template_stack(const struct cli_template *t, bool sam, bool json)
{
    struct json_object *made = stack(t, sam);

    if (json) {
        (void)printf("%s\n", json_object_to_json_string_ext(
                                 made, JSON_C_TO_STRING_PRETTY |
                                           JSON_C_TO_STRING_SPACED |
                                           JSON_C_TO_STRING_NOSLASHESCAPE));
    } else {
        cli_yaml(stdout, made);
    }
    (void)json_object_put(made);
}
