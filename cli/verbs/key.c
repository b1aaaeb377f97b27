/* idem key: the identity and fingerprint of a key, ours or another library's. */
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "options/read.h"
#include "request/identity.h"
#include "request/request.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/text.h"

#include <idem/key.h>
#include <stdlib.h>

static const char *const flavours[] = {
#define IDEM__X(id, word) word,
    IDEM_FLAVOUR_MAP(IDEM__X)
#undef IDEM__X
        NULL,
};

static struct {
    struct cli_claim claim;
    int flavour; /* Index into flavours. */
    bool has_flavour;
    const char *prefix; /* NULL: the flavour's own, if it has one. */
    bool json;
} args = {.claim = CLI_CLAIM_INIT};

/* ---- Keys of other libraries ---- */

#define EVENT_MAX ((size_t)16 * 1024 * 1024)

/* In TypeScript, only the name of the function precedes the "#"; Lambda sets the
 * variable. */
static const char *find_prefix(enum idem_flavour which)
{
    return args.prefix == NULL && which == IDEM_FLAVOUR_TYPESCRIPT
               ? getenv("AWS_LAMBDA_FUNCTION_NAME")
               : args.prefix;
}

static int print_key(enum idem_flavour which, struct idem_slice key)
{
    struct cli_json json;

    if (!args.json) {
        cli_print_escaped(stdout, key);
        (void)putchar('\n');
        return CLI_OK;
    }
    cli_json_init(&json);
    cli_json_text(&json, "flavour", idem_flavour_name(which));
    cli_json_bytes(&json, "key", key);
    return cli_json_print(&json);
}

/* Selects from @event what --key-from says, or takes all of it. */
static int make_key(enum idem_flavour which, const char *prefix,
                    struct idem_slice event, struct idem_key_text *ret_key,
                    struct idem_error *error)
{
    struct idem_selector *selector;
    int rc;

    if (args.claim.key_from == NULL) {
        return idem_flavour_key(which, prefix, event, /* flags= */ 0, ret_key,
                                error);
    }
    rc = idem_selector_create(args.claim.key_from, &selector, error);
    if (rc != 0) {
        return rc;
    }
    rc = idem_selector_run(selector, event, /* flags= */ 0, error);
    if (rc == 0) {
        rc = idem_flavour_key_of(which, prefix, selector, /* flags= */ 0,
                                 ret_key, error);
    }
    idem_selector_destroy(selector);
    return rc;
}

static bool names_identity(const struct cli_claim *claim)
{
    return claim->key != NULL || claim->key_file != NULL || claim->from_args ||
           claim->scope != NULL || claim->fingerprint != NULL ||
           claim->fingerprint_from != NULL || claim->input != NULL;
}

static int run_flavour(const struct cli_command *command, int argc, char **argv)
{
    enum idem_flavour which = idem_flavour_find(flavours[args.flavour]);
    const char *prefix = find_prefix(which);
    struct idem_error error = {0};
    struct idem_key_text key;
    char *event;
    size_t len;
    int status;

    if (!args.has_flavour) {
        return cli_usage(command, "--prefix needs --flavour");
    }
    if (names_identity(&args.claim)) {
        return cli_usage(
            command,
            "--flavour makes the key from the event: give no other key and no scope");
    }
    if (argc != 1) {
        return cli_usage(command,
                         "no event given: name @FILE, or - for standard input");
    }
    if (prefix == NULL) {
        return cli_usage(
            command,
            "no prefix given, the part before the # of the key: --prefix %s",
            which == IDEM_FLAVOUR_PYTHON ? "FUNCTION.module.qualname"
                                         : "FUNCTION");
    }
    status = cli_read_arg("flavour", argv[0], /* text_ok= */ false, EVENT_MAX,
                          &event, &len);
    if (status != 0) {
        return status;
    }
    error.code = make_key(which, prefix, idem_bytes(event, len), &key, &error);
    free(event);
    if (error.code == IDEM_EINVALID) {
        cli_say("%s", error.text); /* The input is wrong, not the store. */
        return CLI_USAGE;
    }
    return error.code == 0 ? print_key(which, idem_bytes(key.text, key.len))
                           : cli_fail_with(&error);
}

/* ---- Keys of idem ---- */

static void print_line(const char *name, struct idem_slice s)
{
    (void)printf("%-*s", s.len > 0 ? 13 : 0, name);
    cli_print_escaped(stdout, s);
    (void)putchar('\n');
}

static void print_hex(const char *name, struct idem_slice bytes)
{
    char hex[2 * IDEM_FINGERPRINT_LEN + 1];

    cli_hex(bytes, hex);
    print_line(name, idem_str(hex));
}

static int print_text(const struct idem_request *q,
                      const uint8_t id[IDEM_ID_LEN])
{
    print_line("scope", q->scope);
    print_line("key", q->key);
    print_hex("id", idem_bytes(id, IDEM_ID_LEN));
    if (q->fingerprint.len > 0) {
        print_hex("fingerprint", q->fingerprint);
    }
    return CLI_OK;
}

static int print_json(const struct idem_request *q,
                      const uint8_t id[IDEM_ID_LEN])
{
    struct cli_json json;

    cli_json_init(&json);
    cli_json_bytes(&json, "scope", q->scope);
    cli_json_bytes(&json, "key", q->key);
    cli_json_hex(&json, "id", idem_bytes(id, IDEM_ID_LEN));
    if (q->fingerprint.len > 0) {
        cli_json_hex(&json, "fingerprint", q->fingerprint);
    }
    return cli_json_print(&json);
}

static int print_identity(const struct idem_request *q)
{
    uint8_t id[IDEM_ID_LEN];
    int code = idem_id(q->scope, q->key, id);

    if (code != 0) {
        cli_say("cannot compute the id: %s", idem_error_text(code));
        return cli_exit_of(code);
    }
    return args.json ? print_json(q, id) : print_text(q, id);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_request request;
    int status;

    if (args.has_flavour || args.prefix != NULL) {
        return run_flavour(command, argc, argv);
    }
    if (argc > 0 && argv[0][0] == '@') {
        return cli_usage(command, "an event needs --flavour");
    }
    status = cli_request_init(&request, command, &args.claim, argc, argv);
    if (status == 0) {
        status = print_identity(&request.request);
        cli_request_finish(&request);
    }
    return status;
}

static struct cli_option options[] = {
    CLI_OPTION_KEY(&args.claim.key, "the idempotency key, 1 to 255 bytes"),
    CLI_OPTION_KEY_FILE(&args.claim.key_file),
    CLI_SWITCH("key-from-args", &args.claim.from_args,
               "make the key from the command line"),
    CLI_OPTION_SCOPE(&args.claim.scope),
    CLI_VALUE("fingerprint", "WHAT", CLI_TEXT, &args.claim.fingerprint,
              "auto (command line and input), none, TEXT or @FILE"),
    CLI_VALUE("input", "WHAT", CLI_TEXT, &args.claim.input,
              "the request: TEXT, @FILE or -"),
    CLI_OPTION_KEY_FROM(&args.claim.key_from),
    CLI_OPTION_FINGERPRINT_FROM(&args.claim.fingerprint_from),
    CLI_VALUE("flavour", "NAME", CLI_CHOICE, &args.flavour,
              "the key that Powertools makes of an event: python, typescript",
              .choices = flavours, .given = &args.has_flavour),
    CLI_VALUE("prefix", "TEXT", CLI_ANY_TEXT, &args.prefix,
              "the part before the # of that key"),
    CLI_OPTION_JSON(&args.json),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem key -k order-42              # the id under which the store keeps it",
    "idem key -k order-42 -- charge 42 # what idem run would compare",
    "idem key --key-from-args -- charge 42",
    "idem key --input @order.json --key-from .id --fingerprint-from .sum,.currency",
    "idem key --flavour typescript --prefix pay --key-from .body.id @event.json",
    NULL,
};

const struct cli_command cli_key = {
    .name = "key",
    .summary = "show the identity and fingerprint of a key",
    .usage = "idem key [OPTION...] -k KEY [-- CMD [ARG...]]\n"
             "       idem key --flavour NAME [OPTION...] @EVENT",
    .examples = examples,
    .options = options,
    .run = run,
    .takes_command = true,
    .takes_event = true,
};
