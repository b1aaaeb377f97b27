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

/* ---- Keys of other libraries ---- */

struct flavour {
    int choice;         /* Index into flavours. */
    const char *select; /* A selector, or NULL: the whole event. */
    const char *prefix; /* NULL: the flavour's own, if it has one. */
    bool allow_null;
    bool json;
};

#define EVENT_MAX ((size_t)16 * 1024 * 1024)

static const char *const flavours[] = {
#define IDEM__X(id, word) word,
    IDEM_FLAVOUR_MAP(IDEM__X)
#undef IDEM__X
        NULL,
};

/* A function's own name is before the "#" in TypeScript, and nothing else. */
static int find_prefix(const struct cli_command *command,
                       const struct flavour *flavour, enum idem_flavour which,
                       const char **ret_prefix)
{
    *ret_prefix = flavour->prefix;
    if (*ret_prefix == NULL && which == IDEM_FLAVOUR_TYPESCRIPT) {
        *ret_prefix = getenv("AWS_LAMBDA_FUNCTION_NAME");
    }
    if (*ret_prefix != NULL) {
        return 0;
    }
    return cli_usage(
        command,
        "no prefix given, the part before the # of the key: --prefix %s",
        which == IDEM_FLAVOUR_PYTHON ? "FUNCTION.module.qualname" : "FUNCTION");
}

static int print(const struct flavour *flavour, enum idem_flavour which,
                 const struct idem_key_text *key)
{
    struct idem_slice text = {key->text, key->len};
    struct cli_json json;

    if (!flavour->json) {
        cli_print_escaped(stdout, text);
        (void)putchar('\n');
        return CLI_OK;
    }
    cli_json_init(&json);
    cli_json_text(&json, "flavour", idem_flavour_name(which));
    cli_json_bytes(&json, "key", text);
    return cli_json_print(&json);
}

/* A fault of an event is a fault of the input. */
static int fail(const struct idem_error *error)
{
    if (error->code != IDEM_EINVALID) {
        return cli_fail_with(error);
    }
    cli_say("%s", error->text);
    return CLI_USAGE;
}

/* Selects from @event and prints the key of that. */
static int print_key(const struct flavour *flavour, enum idem_flavour which,
                     const char *prefix, struct idem_slice event)
{
    unsigned flags = flavour->allow_null ? IDEM_FLAVOUR_NULL : 0;
    struct idem_selector *selector = NULL;
    struct idem_key_text key;
    struct idem_error error;
    int rc = 0;

    if (flavour->select == NULL) {
        rc = idem_flavour_key(which, prefix, event, flags, &key, &error);
    } else {
        rc = idem_selector_create(flavour->select, &selector, &error);
        if (rc == 0) {
            rc = idem_selector_run(selector, event, /* flags= */ 0, &error);
        }
        if (rc == 0) {
            rc = idem_flavour_key_of(which, prefix, selector, flags, &key,
                                     &error);
        }
    }
    idem_selector_destroy(selector);
    return rc == 0 ? print(flavour, which, &key) : fail(&error);
}

static int print_flavour(const struct cli_command *command,
                         const struct flavour *flavour, int argc, char **argv)
{
    enum idem_flavour which = idem_flavour_find(flavours[flavour->choice]);
    const char *prefix = NULL;
    char *event;
    size_t len;
    int status;

    if (argc != 1) {
        return cli_usage(command,
                         "no event given: name @FILE, or - for standard input");
    }
    status = find_prefix(command, flavour, which, &prefix);
    if (status == 0) {
        status = cli_read_arg("flavour", argv[0], /* text_ok= */ false,
                              EVENT_MAX, &event, &len);
    }
    if (status != 0) {
        return status;
    }
    status = print_key(flavour, which, prefix, idem_bytes(event, len));
    free(event);
    return status;
}

static struct {
    struct cli_claim claim;
    struct flavour flavour;
    bool has_flavour;
    bool json;
} args = {.claim = CLI_CLAIM_INIT};

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
        cli_say("cannot make the id: %s", idem_error_text(code));
        return cli_exit_of(code);
    }
    return args.json ? print_json(q, id) : print_text(q, id);
}

static bool names_identity(const struct cli_claim *claim)
{
    return claim->key != NULL || claim->key_file != NULL || claim->from_args ||
           claim->scope != NULL || claim->fingerprint != NULL ||
           claim->fingerprint_from != NULL || claim->input != NULL;
}

static int run_flavour(const struct cli_command *command, int argc, char **argv)
{
    if (!args.has_flavour) {
        return cli_usage(command, "--prefix and --allow-null want --flavour");
    }
    if (names_identity(&args.claim)) {
        return cli_usage(
            command,
            "--flavour makes the key from the event: give no other key and no scope");
    }
    args.flavour.select = args.claim.key_from;
    args.flavour.json = args.json;
    return print_flavour(command, &args.flavour, argc, argv);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_request request;
    int status;

    if (args.has_flavour || args.flavour.prefix != NULL ||
        args.flavour.allow_null) {
        return run_flavour(command, argc, argv);
    }
    if (argc > 0 && argv[0][0] == '@') {
        return cli_usage(command, "an event wants --flavour");
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
               "make the key of the command line"),
    CLI_OPTION_SCOPE(&args.claim.scope),
    CLI_VALUE("fingerprint", "WHAT", CLI_TEXT, &args.claim.fingerprint,
              "auto (command line and input), none, TEXT or @FILE"),
    CLI_VALUE("input", "WHAT", CLI_TEXT, &args.claim.input,
              "the request: TEXT, @FILE or -"),
    CLI_OPTION_KEY_FROM(&args.claim.key_from),
    CLI_OPTION_FINGERPRINT_FROM(&args.claim.fingerprint_from),
    CLI_VALUE("flavour", "NAME", CLI_CHOICE, &args.flavour.choice,
              "the key that Powertools makes of an event: python, typescript",
              .choices = flavours, .given = &args.has_flavour),
    CLI_VALUE("prefix", "TEXT", CLI_ANY_TEXT, &args.flavour.prefix,
              "the part before the # of that key"),
    CLI_SWITCH("allow-null", &args.flavour.allow_null,
               "take null, although every event without it has that key"),
    CLI_OPTION_JSON(&args.json),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem key -k order-42              # the id that the store files it under",
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
