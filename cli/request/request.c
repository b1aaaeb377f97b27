/* The request of a command line: its owner, its result, and all of its parts. */
#include "request/request.h"

#include "options/command.h"
#include "options/read.h"
#include "request/identity.h"
#include "text/error.h"
#include "text/text.h"

#include <idem/form.h>
#include <idem/setting.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- The owner ---- */

static void host_name(char buf[128])
{
    if (gethostname(buf, 128) != 0) {
        (void)snprintf(buf, 128, "localhost");
    }
    buf[127] = '\0';
}

/* Copies @given, else $IDEM_OWNER, cut to the size that a record holds. False if neither
 * is set. */
static bool said(const char *given, char buf[IDEM_OWNER_MAX + 1])
{
    const char *text = given != NULL ? given : secure_getenv("IDEM_OWNER");

    if (text == NULL || *text == '\0') {
        return false;
    }
    (void)snprintf(buf, IDEM_OWNER_MAX + 1, "%s", text);
    return true;
}

void cli_owner(const char *given, long pid, char buf[IDEM_OWNER_MAX + 1])
{
    char host[128];

    if (said(given, buf)) {
        return;
    }
    host_name(host);
    (void)snprintf(buf, IDEM_OWNER_MAX + 1, "%s/%ld", host, pid);
}

void cli_who(const char *given, char buf[IDEM_OWNER_MAX + 1])
{
    const struct passwd *user;
    char host[128];

    if (said(given, buf)) {
        return;
    }
    host_name(host);
    user = getpwuid(getuid());
    if (user != NULL) {
        (void)snprintf(buf, IDEM_OWNER_MAX + 1, "%.100s@%s", user->pw_name,
                       host);
    } else {
        (void)snprintf(buf, IDEM_OWNER_MAX + 1, "%ld@%s", (long)getuid(), host);
    }
}

/* ---- Results ---- */

/* As much as idem run keeps by default, and every other store of libidem. */
#define RESULT_MAX ((size_t)16 << 20)

static int read_bytes(struct cli_result *r, const char *option,
                      const char *text)
{
    size_t len;
    int status;

    status = cli_read_some(option, text, /* text_ok= */ true, RESULT_MAX,
                           &r->bytes, &len);
    if (status != 0) {
        return status;
    }
    if (len > RESULT_MAX) {
        cli_say("--%s: too long to be kept; the outcome is recorded without it",
                option);
        r->result.not_kept = true;
        return 0;
    }
    r->result.bytes = idem_bytes(r->bytes, len);
    return 0;
}

int cli_result_check(const struct cli_command *command,
                     const struct cli_result_spec *spec)
{
    return spec->exit_given && spec->http_given
               ? cli_usage(command, "choose one: --exit or --http-status")
               : 0;
}

static void set_meta(struct cli_result *r, const char *word, unsigned number)
{
    (void)snprintf(r->meta, sizeof(r->meta), "%s %u\n", word, number);
    r->result.meta = idem_str(r->meta);
}

int cli_result_init(struct cli_result *ret_result, const char *option,
                    const char *text, const struct cli_result_spec *spec)
{
    memset(ret_result, 0, sizeof(*ret_result));
    ret_result->result.content_type = idem_str(spec->content_type);
    if (spec->exit_given) {
        set_meta(ret_result, "exit", (unsigned)spec->exit);
    } else if (spec->http_given) {
        set_meta(ret_result, "HTTP", (unsigned)spec->http_status);
    }
    return text == NULL ? 0 : read_bytes(ret_result, option, text);
}

void cli_result_adopt(struct cli_result *result,
                      const struct cli_result_spec *spec,
                      const struct idem_result *before)
{
    struct idem_form form;

    idem_form_read(before, &form);
    if (spec->exit_given || spec->http_given) {
        return;
    }
    if (form.kind == IDEM_FORM_HTTP) {
        set_meta(result, "HTTP", 200);
    } else if (form.has_exit) {
        set_meta(result, "exit", 0);
    }
}

void cli_result_finish(struct cli_result *result)
{
    free(result->bytes);
    memset(result, 0, sizeof(*result));
}

/* ---- The request ---- */

/* A finite lease longer than the retention is a mistake: the user mixed up units, or
 * exchanged the two options. */
static int check_times(const struct cli_command *command,
                       const struct cli_claim *claim)
{
    char lease[32];
    char retention[32];

    if (claim->wait_then_run && claim->wait_ms == 0) {
        return cli_usage(command, "--wait-then-run needs --wait TIME");
    }
    if (claim->lease_ms == IDEM_NEVER ||
        claim->lease_ms <= claim->retention_ms) {
        return 0;
    }
    idem_setting_time(claim->lease_ms, lease);
    idem_setting_time(claim->retention_ms, retention);
    return cli_usage(command,
                     "--lease %s is longer than --retention %s; a retention "
                     "from %s on is allowed, or never",
                     lease, retention, lease);
}

/* How many options that name a key were given. */
static int count_keys(const struct cli_claim *claim)
{
    return (claim->key != NULL) + (claim->key_file != NULL) +
           (claim->key_from != NULL) + claim->from_args;
}

/* Checks that need nothing to be read. */
static int check_sources(const struct cli_command *command,
                         const struct cli_claim *claim, int argc)
{
    bool extracts = claim->key_from != NULL || claim->fingerprint_from != NULL;

    if (count_keys(claim) > 1) {
        return cli_usage(command,
                         "give the key once: --key, --key-file%s or --key-from",
                         claim->from_args ? ", --key-from-args" : "");
    }
    if (claim->from_args && argc == 0) {
        return cli_usage(command, "--key-from-args needs a command line");
    }
    if (claim->fingerprint != NULL && claim->fingerprint_from != NULL) {
        return cli_usage(command, "give the fingerprint once: --fingerprint or "
                                  "--fingerprint-from");
    }
    if (extracts && claim->input == NULL) {
        return cli_usage(command,
                         "--%s selects from the input: name it with --input "
                         "@FILE, or --input - for standard input",
                         claim->key_from != NULL ? "key-from"
                                                 : "fingerprint-from");
    }
    return 0;
}

static int fill_key(struct cli_request *r, const struct cli_command *command,
                    const struct cli_claim *claim, int argc, char **argv)
{
    int status;

    if (claim->key_from != NULL) {
        status = cli_extract_key(claim->key_from, r->request.input, &r->key);
    } else if (claim->from_args) {
        status = cli_key_from_args(argc, argv, &r->key);
    } else {
        status = cli_read_key(command, claim->key, claim->key_file, &r->key);
    }
    r->request.key = idem_bytes(r->key.bytes, r->key.len);
    return status;
}

static int fill_input(struct cli_request *r, const struct cli_claim *claim)
{
    size_t len;
    int status;

    if (claim->input == NULL) {
        return 0;
    }
    status = cli_read_arg("input", claim->input, /* text_ok= */ true,
                          IDEM_RESULT_MAX, &r->input, &len);
    if (status == 0) {
        r->request.input = idem_bytes(r->input, len);
    }
    return status;
}

/* True if the user gave the name of a file where its bytes were meant. */
static bool is_name_of_file(const char *input)
{
    return input[0] != '@' && strcmp(input, "-") != 0 &&
           access(input, F_OK) == 0;
}

/* Without --key-from it reads the key first, so that it reports a mistake in the key
 * before it reads standard input. */
static int fill_key_and_input(struct cli_request *r,
                              const struct cli_command *command,
                              const struct cli_claim *claim, int argc,
                              char **argv)
{
    int status = 0;

    if ((claim->key_from != NULL || claim->fingerprint_from != NULL) &&
        is_name_of_file(claim->input)) {
        return cli_usage(command,
                         "--input %s is the text itself; for the contents of "
                         "the file: --input @%s",
                         claim->input, claim->input);
    }
    if (claim->key_from == NULL) {
        status = fill_key(r, command, claim, argc, argv);
    }
    if (status == 0) {
        status = fill_input(r, claim);
    }
    if (status == 0 && claim->key_from != NULL) {
        status = fill_key(r, command, claim, argc, argv);
    }
    return status;
}

static int fill_fingerprint(struct cli_request *r,
                            const struct cli_claim *claim, int argc,
                            char **argv)
{
    const struct cli_input input = {.bytes = r->request.input,
                                    .is_json = claim->key_from != NULL};
    bool has = true;
    int status;

    if (claim->fingerprint_from != NULL) {
        status = cli_fingerprint_from(claim->fingerprint_from, r->request.input,
                                      r->fingerprint);
    } else {
        status =
            cli_fingerprint(claim->fingerprint, argc, argv, claim->from_args,
                            &input, r->fingerprint, &has);
    }
    if (status == 0 && has) {
        r->request.fingerprint =
            idem_bytes(r->fingerprint, sizeof(r->fingerprint));
    }
    return status;
}

static void fill_settings(struct cli_request *r, const struct cli_claim *claim)
{
    struct idem_request *q = &r->request;

    cli_owner(claim->owner, claim->by_caller ? getppid() : getpid(), r->owner);
    q->owner = idem_str(r->owner);
    q->traceparent = idem_str(getenv("TRACEPARENT"));
    q->on_expired_lease =
        claim->on_expired_lease == IDEM_RERUN ? IDEM_RERUN : IDEM_HOLD;
    q->lease_ms = claim->lease_ms;
    q->retention_ms = claim->retention_ms;
    q->expect_ms = claim->expect_ms;
    q->attempts_max = (uint32_t)claim->attempts_max;
    q->wait_ms = claim->wait_ms;
    q->flags = claim->wait_then_run ? IDEM_WAIT_THEN_RUN : 0;
}

int cli_request_init(struct cli_request *ret_request,
                     const struct cli_command *command,
                     const struct cli_claim *claim, int argc, char **argv)
{
    static const struct idem_request empty = IDEM_REQUEST_INIT;
    int status;

    memset(ret_request, 0, sizeof(*ret_request));
    ret_request->request = empty;
    status = check_times(command, claim);
    if (status != 0) {
        goto done;
    }
    status = check_sources(command, claim, argc);
    if (status != 0) {
        goto done;
    }
    status = cli_scope(claim->scope, &ret_request->request.scope);
    if (status != 0) {
        goto done;
    }
    status = fill_key_and_input(ret_request, command, claim, argc, argv);
    if (status != 0) {
        goto done;
    }
    status = fill_fingerprint(ret_request, claim, argc, argv);
    if (status != 0) {
        goto done;
    }
    fill_settings(ret_request, claim);
done:
    if (status != 0) {
        cli_request_finish(ret_request);
    }
    return status;
}

void cli_request_finish(struct cli_request *request)
{
    free(request->input);
    memset(request, 0, sizeof(*request));
}
