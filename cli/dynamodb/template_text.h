/* template_text.h: the files of cli/templates, by line; each ends with NULL.
 *
 * A line is printed as it is, but for
 *
 *     @TABLE@       the name of the table
 *     @REGION@      " --region NAME" where the region is known
 *     @index|       at its start: only for a table with its index
 *     @no-index|    only for one without
 *     @limits|      only if its users count requests in it
 *     @no-limits|   only if they do not
 */
#ifndef IDEM_CLI_DYNAMODB_TEMPLATE_TEXT_H
#define IDEM_CLI_DYNAMODB_TEMPLATE_TEXT_H

extern const char *const cli_template_cloudformation_yaml[];
extern const char *const cli_template_cloudformation_json[];
extern const char *const cli_template_sam_yaml[];
extern const char *const cli_template_terraform_tf[];
extern const char *const cli_template_commands_sh[];

#endif
