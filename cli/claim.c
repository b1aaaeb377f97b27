/* The request that `idem begin` and `idem run` make of their options. */
#include "claim.h"

#include "cli.h"

#include <stdlib.h>
#include <unistd.h>

const char *const cli_on_expired_lease[] = {"hold", "rerun", NULL};

static const enum idem_on_expired_lease policies[] = {IDEM_HOLD, IDEM_RERUN};

/* A finite lease beyond the retention is a slip: units mixed up, or the two
 * exchanged. */
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
    cli_duration_text(claim->lease_ms, lease);
    cli_duration_text(claim->retention_ms, retention);
    return cli_usage(command,
                     "--lease %s is longer than --retention %s; a retention "
                     "from %s on is allowed, or never",
                     lease, retention, lease);
}

int cli_claim_key(const struct cli_command *command,
                  const struct cli_claim *claim, int argc, char **argv,
                  struct cli_key_text *ret_key)
{
    if (!claim->from_args) {
        return cli_read_key(command, claim->key, claim->key_file, ret_key);
    }
    if (claim->key != NULL || claim->key_file != NULL) {
        return cli_usage(command,
                         "give the key once: --key-from-args or --key");
    }
    if (argc == 0) {
        return cli_usage(command, "--key-from-args: there is no command line");
    }
    return cli_key_from_args(argc, argv, ret_key);
}

static int fill_identity(struct cli_request *r,
                         const struct cli_command *command,
                         const struct cli_claim *claim, int argc, char **argv)
{
    int status = cli_claim_key(command, claim, argc, argv, &r->key);

    if (status != 0) {
        return status;
    }
    r->request.key = idem_bytes(r->key.bytes, r->key.len);
    return cli_scope(claim->scope, &r->request.scope);
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

static int fill_fingerprint(struct cli_request *r,
                            const struct cli_claim *claim, int argc,
                            char **argv)
{
    bool has;
    int status;

    status = cli_fingerprint(claim->fingerprint, argc, argv, r->request.input,
                             r->fingerprint, &has);
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
    q->on_expired_lease = policies[claim->on_expired_lease];
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
    if (status == 0) {
        status = fill_identity(ret_request, command, claim, argc, argv);
    }
    if (status == 0) {
        status = fill_input(ret_request, claim);
    }
    if (status == 0) {
        status = fill_fingerprint(ret_request, claim, argc, argv);
    }
    if (status != 0) {
        cli_request_finish(ret_request);
        return status;
    }
    fill_settings(ret_request, claim);
    return 0;
}

void cli_request_finish(struct cli_request *request)
{
    free(request->input);
    memset(request, 0, sizeof(*request));
}
