/* idem store template: what makes a table, for the tool that makes it. */
#include "template.h"

#include "cli.h"
#include "template_parts.h"

#include <stdlib.h>

const char *const cli_template_formats[] = {
    "cloudformation", "sam", "json", "terraform", "cli", NULL,
};

const char *const cli_template_use[] = {
    "dynamodb:GetItem",
    "dynamodb:BatchGetItem",
    "dynamodb:PutItem",
    "dynamodb:BatchWriteItem",
    NULL,
};

const char *const cli_template_limit[] = {"dynamodb:UpdateItem", NULL};

const char *const cli_template_operate[] = {
    "dynamodb:Scan",
    "dynamodb:DeleteItem",
    "dynamodb:DescribeTable",
    "dynamodb:DescribeTimeToLive",
    "dynamodb:DescribeContinuousBackups",
    NULL,
};

const char *const cli_template_operate_index[] = {"dynamodb:Query", NULL};

const char cli_template_index[] =
    "[{\"IndexName\":\"open\",\"KeySchema\":["
    "{\"AttributeName\":\"open\",\"KeyType\":\"HASH\"},"
    "{\"AttributeName\":\"since\",\"KeyType\":\"RANGE\"}],"
    "\"Projection\":{\"ProjectionType\":\"KEYS_ONLY\"}}]";

const char *const *cli_template_more(const struct cli_template *t)
{
    return t->limits ? cli_template_limit : NULL;
}

static bool is_table_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || (c != '\0' && strchr("_-.", c) != NULL);
}

/* A region that is none is left to the tool that reads the template. */
static void read_region(const char *settings, struct cli_template *t)
{
    const char *region = strstr(settings, "region=");
    size_t len;

    if (region != NULL && (region[-1] == '?' || region[-1] == '&')) {
        region += strlen("region=");
        len = strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-");
        if (len < sizeof(t->region)) {
            memcpy(t->region, region, len);
            t->region[len] = '\0';
        }
    }
}

/* What @url, "dynamodb://TABLE?...", says of the table. False: it is no such
 * name. */
static bool read_url(const char *url, struct cli_template *t)
{
    const char *name = url + strlen("dynamodb://");
    size_t len = 0;

    while (is_table_char(name[len])) {
        len++;
    }
    if (len < 3 || len > CLI_TEMPLATE_TABLE_MAX ||
        (name[len] != '\0' && name[len] != '?') ||
        strstr(name + len, "layout=") != NULL) {
        return false;
    }
    memcpy(t->table, name, len);
    t->table[len] = '\0';
    t->index = t->index && strstr(name + len, "index=off") == NULL;
    read_region(name + len, t);
    return true;
}

static int find_table(const struct cli_command *command, const char *store_url,
                      struct cli_template *t)
{
    const char *url =
        store_url != NULL ? store_url : secure_getenv("IDEM_STORE");
    bool is_table =
        url != NULL && strncmp(url, "dynamodb:", strlen("dynamodb:")) == 0;

    (void)strcpy(t->table, "idem");
    if (is_table ? strncmp(url, "dynamodb://", strlen("dynamodb://")) == 0 &&
                       read_url(url, t)
                 : store_url == NULL) {
        return 0;
    }
    return cli_usage(command, "--store: a template is for a table of idem's "
                              "own: dynamodb://TABLE");
}

int cli_template(const struct cli_command *command, const char *store_url,
                 enum cli_template_format format, bool no_index, bool limits)
{
    struct cli_template t = {.index = !no_index, .limits = limits};
    int status = find_table(command, store_url, &t);

    if (status != 0) {
        return status;
    }
    switch (format) {
    case CLI_TEMPLATE_CLOUDFORMATION:
    case CLI_TEMPLATE_JSON:
        cli_template_stack(&t, /* sam= */ false, format == CLI_TEMPLATE_JSON);
        break;
    case CLI_TEMPLATE_SAM:
        cli_template_stack(&t, /* sam= */ true, /* json= */ false);
        break;
    case CLI_TEMPLATE_TERRAFORM:
        cli_template_terraform(&t);
        break;
    case CLI_TEMPLATE_CLI:
        cli_template_commands(&t);
        break;
    }
    return 0;
}
