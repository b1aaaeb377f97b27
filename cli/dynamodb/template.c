/* idem store template: prints the template of a table for the tool that creates it. */
#include "dynamodb/table.h"

#include "options/command.h"

#include <stdio.h>
#include <stdlib.h>

const char *const cli_template_formats[] = {
    "cloudformation", "sam", "json", "terraform", "cli", NULL,
};

/* In the order of the formats. */
static const char *const *const texts[] = {
    [CLI_TEMPLATE_CLOUDFORMATION] = cli_template_cloudformation_yaml,
    [CLI_TEMPLATE_SAM] = cli_template_sam_yaml,
    [CLI_TEMPLATE_JSON] = cli_template_cloudformation_json,
    [CLI_TEMPLATE_TERRAFORM] = cli_template_terraform_tf,
    [CLI_TEMPLATE_CLI] = cli_template_commands_sh,
};

enum {
    TABLE_MAX = 255
};

struct table {
    char name[TABLE_MAX + 1];
    char region[64]; /* "": not known. */
    bool index;
};

static bool is_table_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || (c != '\0' && strchr("_-.", c) != NULL);
}

/* If the URL names no region, the tool that reads the template chooses it. */
static void read_region(const char *settings, struct table *t)
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

/* Reads the facts of the table in @url, "dynamodb://TABLE?...". False: it is not the
 * URL of a table of idem's own. */
static bool read_url(const char *url, struct table *t)
{
    const char *name = url + strlen("dynamodb://");
    size_t len = 0;

    while (is_table_char(name[len])) {
        len++;
    }
    if (len < 3 || len > TABLE_MAX || (name[len] != '\0' && name[len] != '?') ||
        strstr(name + len, "layout=") != NULL) {
        return false;
    }
    memcpy(t->name, name, len);
    t->name[len] = '\0';
    t->index = strstr(name + len, "index=off") == NULL;
    read_region(name + len, t);
    return true;
}

static int find_table(const struct cli_command *command, const char *store_url,
                      struct table *t)
{
    const char *url =
        store_url != NULL ? store_url : secure_getenv("IDEM_STORE");
    bool is_table =
        url != NULL && strncmp(url, "dynamodb:", strlen("dynamodb:")) == 0;

    (void)strcpy(t->name, "idem");
    if (is_table ? strncmp(url, "dynamodb://", strlen("dynamodb://")) == 0 &&
                       read_url(url, t)
                 : store_url == NULL) {
        return 0;
    }
    return cli_usage(command,
                     "--store: a template is for tables of idem's "
                     "own: dynamodb://TABLE, postgres://HOST/DATABASE");
}

/* True if the line at *@line is for a table like @t; moves past its condition. */
static bool is_wanted(const struct table *t, const char **line)
{
    const struct {
        const char *mark;
        bool holds;
    } rows[] = {
        {"@index|", t->index},
        {"@no-index|", !t->index},
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t len = strlen(rows[i].mark);

        if (strncmp(*line, rows[i].mark, len) == 0) {
            *line += len;
            return rows[i].holds;
        }
    }
    return true;
}

/* Prints @text with its marks replaced. */
static void print_line(const struct table *t, const char *text)
{
    while (*text != '\0') {
        if (strncmp(text, "@TABLE@", 7) == 0) {
            (void)fputs(t->name, stdout);
            text += 7;
        } else if (strncmp(text, "@REGION@", 8) == 0) {
            (void)printf("%s%s", t->region[0] != '\0' ? " --region " : "",
                         t->region);
            text += 8;
        } else {
            (void)putchar(*text++);
        }
    }
    (void)putchar('\n');
}

static void print_lines(const struct table *t, const char *const *lines)
{
    for (; *lines != NULL; lines++) {
        const char *line = *lines;

        if (is_wanted(t, &line)) {
            print_line(t, line);
        }
    }
}

int cli_template(const struct cli_command *command, const char *store_url,
                 enum cli_template_format format)
{
    struct table t = {.index = true};
    int status = find_table(command, store_url, &t);

    if (status == 0) {
        print_lines(&t, texts[format]);
    }
    return status;
}
