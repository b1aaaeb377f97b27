/* Attempts that another process began: from their token. */
#include "verbs/held.h"

#include "options/command.h"
#include "options/read.h"
#include "record/record.h"
#include "record/verdict.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/screen.h"

#include <stdlib.h>

/* Takes the newline of `echo "$token"` off. */
static void cut_newline(char *text, size_t *len)
{
    if (*len > 0 && text[*len - 1] == '\n') {
        --*len;
    }
    text[*len] = '\0';
}

/* The token of the environment is taken only where that was said: a script that has just
 * begun an attempt of its own, and forgot to name it, must not end the one around it. */
static int read_token(const struct cli_command *command,
                      const struct cli_token_choice *choice,
                      char buf[IDEM_TOKEN_MAX + 1])
{
    const char *spec =
        choice->self ? secure_getenv("IDEM_TOKEN") : choice->token;
    char *text;
    size_t len;
    int status;

    if (choice->self && choice->token != NULL) {
        return cli_usage(command, "give the attempt once: --token or --self");
    }
    if (choice->self && (spec == NULL || *spec == '\0')) {
        return cli_usage(command, "--self: IDEM_TOKEN is not set; this is not "
                                  "part of an attempt");
    }
    if (spec == NULL) {
        return cli_usage(
            command,
            "no attempt given: --token TOKEN, or --self inside idem run");
    }
    status = cli_read_arg("token", spec, /* text_ok= */ true,
                          IDEM_TOKEN_MAX - 1, &text, &len);
    if (status != 0) {
        return status;
    }
    memcpy(buf, text, len);
    cut_newline(buf, &len);
    free(text);
    if (strlen(buf) != len) {
        return cli_usage(command, "not an idem token: it contains a NUL byte");
    }
    return 0;
}

int cli_hold(const struct cli_command *command,
             const struct cli_token_choice *choice, const char *store_url,
             bool json, struct cli_held *ret_held)
{
    struct cli_held held = {.store_url = store_url, .json = json};
    struct idem_error error = {0};
    char text[IDEM_TOKEN_MAX + 1];
    int status;

    status = read_token(command, choice, text);
    if (status == 0) {
        status = cli_patience_choose(command, &held.patience);
    }
    if (status != 0) {
        return status;
    }
    status = cli_open_store(store_url, IDEM_OPEN_NO_CREATE, &held.store);
    if (status != 0) {
        return status;
    }
    cli_patience_set(held.store,
                     cli_patience_ms(&held.patience, held.store, 0));
    error.code =
        idem_attempt_from_token(held.store, text, &held.attempt, &error);
    if (error.code != 0) {
        return cli_held_finish(&held, &error);
    }
    /* An outcome that was told before comes first; if it still cannot be, we
     * shall see. */
    (void)cli_journal_settle(held.store, held.attempt->record->scope,
                             held.attempt->record->key, cli_stderr_is_tty(),
                             &error);
    *ret_held = held;
    return 0;
}

/* A caller that lost the key wants to know which owner has it. */
static int say_lost(const struct cli_held *held, const struct idem_error *error)
{
    char *command = NULL;
    size_t len;
    FILE *f = open_memstream(&command, &len);

    if (f != NULL) {
        cli_print_remedy(f, "show", "", held->attempt->record, held->store_url);
        (void)fclose(f);
    }
    cli_say("%s; see: %s", error->text,
            command != NULL ? command : "idem show");
    free(command);
    return cli_exit_of(error->code);
}

/* It is not lost, but not on record either. */
static int say_kept(const struct cli_net *net, const struct idem_error *error)
{
    cli_say(
        "%s; the outcome is kept in %s; the next command for this key records it, or: idem reconcile",
        error->text, net->path != NULL ? net->path : "the journal");
    return CLI_NOT_RECORDED;
}

int cli_held_end(struct cli_held *held, const struct idem_outcome *outcome,
                 const struct cli_journal_choice *journal)
{
    struct idem_error error = {0};
    struct cli_net net;
    int status = 0;

    cli_net_init(&net, (enum cli_journal_rule)journal->rule, held->store,
                 held->attempt, outcome);
    cli_patience_set(held->store, cli_patience_ms(&held->patience, held->store,
                                                  outcome->result.bytes.len));
    error.code = idem_end(held->attempt, outcome, &error);
    cli_net_answered(&net, error.code);
    if (cli_net_settle(&net, error.code)) {
        status = say_kept(&net, &error);
        error.code = 0;
    } else if (error.code != 0) {
        cli_net_explain(&net, &error);
    } else {
        cli_journal_catch_up(held->store, cli_stderr_is_tty());
    }
    cli_net_finish(&net);
    if (status != 0) {
        held->json = false; /* It is not on record. */
        (void)cli_held_finish(held, &error);
        return status;
    }
    return cli_held_finish(held, &error);
}

/* A renewal is answered without the record: of a token only this is known. */
static void add_lease(struct cli_json *json, const struct idem_attempt *attempt)
{
    cli_json_bytes(json, "scope", attempt->record->scope);
    cli_json_bytes(json, "key", attempt->record->key);
    cli_json_text(json, "status", idem_status_name(IDEM_STATUS_IN_PROGRESS));
    cli_json_count(json, "fence", attempt->record->fence);
    cli_json_ms(json, "lease_left_ms", idem_attempt_lease_left_ms(attempt));
}

/* The record as it is now, without its bytes: they are the caller's own. */
static int print_json(const struct cli_held *held)
{
    struct cli_json json;

    cli_json_init(&json);
    if (held->attempt->record->status != 0) {
        cli_json_record(&json, held->attempt->record, /* with_bytes= */ false);
    } else {
        add_lease(&json, held->attempt);
    }
    return cli_json_print(&json);
}

int cli_held_finish(struct cli_held *held, const struct idem_error *error)
{
    int status = CLI_OK;

    if (error->code == IDEM_ELOST) {
        status = say_lost(held, error);
    } else if (error->code != 0) {
        status = cli_fail_with(error);
    } else if (held->json) {
        status = print_json(held);
    }
    idem_attempt_destroy(held->attempt);
    idem_close(held->store);
    memset(held, 0, sizeof(*held));
    return status;
}
