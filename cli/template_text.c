/* The table for Terraform, and for the AWS command line. */
#include "template_parts.h"

#include <stdio.h>

/* ---- Terraform ---- */

static void print_terraform_statement(const char *const *actions,
                                      const char *const *more,
                                      const char *resource)
{
    (void)printf("  statement {\n    actions = [\n");
    for (; *actions != NULL; actions++) {
        (void)printf("      \"%s\",\n", *actions);
    }
    for (; more != NULL && *more != NULL; more++) {
        (void)printf("      \"%s\",\n", *more);
    }
    (void)printf("    ]\n    resources = [%s]\n  }\n", resource);
}

static void print_terraform_policy(const char *name, const char *says)
{
    (void)printf("resource \"aws_iam_policy\" \"%s\" {\n"
                 "  name_prefix = \"%s-\"\n"
                 "  description = \"%s\"\n"
                 "  policy      = data.aws_iam_policy_document.%s.json\n"
                 "}\n\n",
                 name, name, says, name);
}

void cli_template_terraform(const struct cli_template *t)
{
    const char *arn = "aws_dynamodb_table.idem.arn";

    (void)printf("variable \"table_name\" {\n"
                 "  type    = string\n"
                 "  default = \"%s\"\n"
                 "}\n\n"
                 "data \"aws_region\" \"idem\" {}\n\n"
                 "resource \"aws_dynamodb_table\" \"idem\" {\n"
                 "  name                        = var.table_name\n"
                 "  billing_mode                = \"PAY_PER_REQUEST\"\n"
                 "  hash_key                    = \"id\"\n"
                 "  deletion_protection_enabled = true\n\n"
                 "  attribute {\n    name = \"id\"\n    type = \"S\"\n  }\n\n",
                 t->table);
    if (t->index) {
        (void)fputs(
            "  attribute {\n    name = \"open\"\n    type = \"S\"\n  }\n\n"
            "  attribute {\n    name = \"since\"\n    type = \"N\"\n  }\n\n"
            "  global_secondary_index {\n"
            "    name            = \"open\"\n"
            "    hash_key        = \"open\"\n"
            "    range_key       = \"since\"\n"
            "    projection_type = \"KEYS_ONLY\"\n  }\n\n",
            stdout);
    }
    (void)fputs("  ttl {\n    attribute_name = \"ttl\"\n"
                "    enabled        = true\n  }\n\n"
                "  point_in_time_recovery {\n    enabled = true\n  }\n}\n\n"
                "data \"aws_iam_policy_document\" \"idem_use\" {\n",
                stdout);
    print_terraform_statement(cli_template_use, cli_template_more(t), arn);
    (void)fputs("}\n\n", stdout);
    print_terraform_policy("idem_use", CLI_TEMPLATE_USE_SAYS);
    (void)fputs("data \"aws_iam_policy_document\" \"idem_operate\" {\n",
                stdout);
    print_terraform_statement(cli_template_use, cli_template_operate, arn);
    if (t->index) {
        print_terraform_statement(
            cli_template_operate_index, /* more= */ NULL,
            "\"${aws_dynamodb_table.idem.arn}/index/open\"");
    }
    (void)fputs("}\n\n", stdout);
    print_terraform_policy("idem_operate", CLI_TEMPLATE_OPERATE_SAYS);
    (void)printf("output \"idem_store\" {\n"
                 "  value = \"dynamodb://${aws_dynamodb_table.idem.name}"
                 "?region=${data.aws_region.idem.name}%s\"\n}\n",
                 t->index ? "" : "&index=off");
}

/* ---- The AWS command line ---- */

/* "aws dynamodb VERB --table-name ..." */
static void begin_command(const struct cli_template *t, const char *verb)
{
    (void)printf("aws dynamodb %s --table-name %s", verb, t->table);
    if (t->region[0] != '\0') {
        (void)printf(" --region %s", t->region);
    }
}

void cli_template_commands(const struct cli_template *t)
{
    begin_command(t, "create-table");
    (void)fputs(" \\\n    --billing-mode PAY_PER_REQUEST "
                "--deletion-protection-enabled \\\n"
                "    --key-schema AttributeName=id,KeyType=HASH \\\n"
                "    --attribute-definitions AttributeName=id,AttributeType=S",
                stdout);
    if (t->index) {
        (void)printf(" \\\n        AttributeName=open,AttributeType=S "
                     "AttributeName=since,AttributeType=N \\\n"
                     "    --global-secondary-indexes '%s'",
                     cli_template_index);
    }
    (void)putchar('\n');
    begin_command(t, "wait table-exists");
    (void)putchar('\n');
    begin_command(t, "update-time-to-live");
    (void)fputs(" \\\n    --time-to-live-specification "
                "Enabled=true,AttributeName=ttl\n",
                stdout);
    begin_command(t, "update-continuous-backups");
    (void)fputs(" \\\n    --point-in-time-recovery-specification "
                "PointInTimeRecoveryEnabled=true\n",
                stdout);
}
