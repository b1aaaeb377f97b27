/* verdict.h: verdicts for people, and the commands that help. */
#ifndef IDEM_CLI_RECORD_VERDICT_H
#define IDEM_CLI_RECORD_VERDICT_H

#include <idem.h>
#include <stdio.h>

/* Reports on stderr why the work is not started: for MISMATCH, FAILED, UNKNOWN,
 * BUSY and RELEASED, with the commands that help. Returns the exit status.
 * @store_url: --store, if it was given. */
int cli_refuse(const struct idem_attempt *attempt, const char *store_url);

/* ---- Commands for people to type when they must decide ---- */

/* @s as one word of a shell. */
void cli_print_quoted(FILE *f, struct idem_slice s);

/* " @text" as one word of a shell, after "--" if it looks like an option. */
void cli_print_operand(FILE *f, struct idem_slice text);

/* Returns @key as cli_print_key() shows it, which the caller frees. NULL: no memory. */
char *cli_shown_key(struct idem_slice key);

/* The URL of a store, without its passwords, as one word of a shell. */
void cli_print_url(FILE *f, const char *url);

/* "idem COMMAND --store=URL --scope=SCOPE" + @options + " KEY", ready to be
 * typed. @store_url: --store, or NULL if it was not given. */
void cli_print_remedy(FILE *f, const char *command, const char *options,
                      const struct idem_record *record, const char *store_url);

/* True if the owner is an nginx, whose callers wait for an HTTP response. */
bool cli_is_http(const struct idem_record *record);

/* Prints the commands that resolve @record, each as a newline and an indented line. */
void cli_print_resolve(FILE *f, const struct idem_record *record,
                       const char *store_url);

/* The same for the command that reopens it. */
void cli_print_reopen(FILE *f, const struct idem_record *record,
                      const char *store_url);

#endif
