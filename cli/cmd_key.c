/* idem key: shows the identity and fingerprint that other commands use. */
#include "cli.h"
#include "flavour.h"
#include "json.h"

static struct {
    const char *key;
    const char *key_file;
    bool key_from_args;
    const char *scope;
    const char *fingerprint;
    struct cli_flavour flavour;
    bool has_flavour;
    bool json;
} args;

struct identity {
    struct idem_slice scope;
    struct cli_key_text key;
    uint8_t id[IDEM_ID_LEN];
    uint8_t fingerprint[IDEM_FINGERPRINT_LEN];
    bool has_fingerprint;
};

static void print_line(const char *name, struct idem_slice s)
{
    (void)printf("%-*s", s.len > 0 ? 13 : 0, name);
    cli_print_escaped(stdout, s);
    (void)putchar('\n');
}

static void print_hex(const char *name, const uint8_t *bytes, size_t len)
{
    char hex[2 * IDEM_FINGERPRINT_LEN + 1];

    cli_hex(idem_bytes(bytes, len), hex);
    print_line(name, idem_str(hex));
}

static int print(const struct identity *i)
{
    print_line("scope", i->scope);
    print_line("key", idem_bytes(i->key.bytes, i->key.len));
    print_hex("id", i->id, sizeof(i->id));
    if (i->has_fingerprint) {
        print_hex("fingerprint", i->fingerprint, sizeof(i->fingerprint));
    }
    return CLI_OK;
}

static int print_json(const struct identity *i)
{
    struct cli_json json;
    int status;

    cli_json_init(&json);
    cli_json_bytes(&json, "scope", i->scope);
    cli_json_bytes(&json, "key", idem_bytes(i->key.bytes, i->key.len));
    cli_json_hex(&json, "id", idem_bytes(i->id, sizeof(i->id)));
    if (i->has_fingerprint) {
        cli_json_hex(&json, "fingerprint",
                     idem_bytes(i->fingerprint, sizeof(i->fingerprint)));
    }
    status = cli_json_print(&json);
    cli_json_finish(&json);
    return status;
}

static int find_id(struct identity *i)
{
    int code = idem_id(i->scope, idem_bytes(i->key.bytes, i->key.len), i->id);

    if (code == 0) {
        return 0;
    }
    cli_say("cannot make the id: %s", idem_error_text(code));
    return cli_exit_of(code);
}

static int print_flavour(const struct cli_command *command, int argc,
                         char **argv)
{
    if (!args.has_flavour) {
        return cli_usage(command, "--select, --prefix and --allow-null want "
                                  "--flavour");
    }
    if (args.key != NULL || args.key_file != NULL || args.key_from_args ||
        args.scope != NULL || args.fingerprint != NULL) {
        return cli_usage(command, "--flavour makes the key of the event: it "
                                  "takes no other key, and no scope");
    }
    args.flavour.json = args.json;
    return cli_flavour_print(command, &args.flavour, argc, argv);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_claim claim = {.key = args.key,
                              .key_file = args.key_file,
                              .from_args = args.key_from_args};
    struct identity i;
    int status;

    if (args.has_flavour || args.flavour.select != NULL ||
        args.flavour.prefix != NULL || args.flavour.allow_null) {
        return print_flavour(command, argc, argv);
    }
    if (argc > 0 && argv[0][0] == '@') {
        return cli_usage(command, "an event wants --flavour");
    }
    status = cli_claim_key(command, &claim, argc, argv, &i.key);
    if (status == 0) {
        status = cli_scope(args.scope, &i.scope);
    }
    if (status == 0) {
        status = find_id(&i);
    }
    if (status == 0) {
        status = cli_fingerprint(args.fingerprint, argc, argv,
                                 /* input= */ idem_str(NULL), i.fingerprint,
                                 &i.has_fingerprint);
    }
    if (status != 0) {
        return status;
    }
    return args.json ? print_json(&i) : print(&i);
}

static struct cli_option options[] = {
    {.name = "key",
     .letter = 'k',
     .kind = CLI_TEXT,
     .target = &args.key,
     .arg = "KEY",
     .max = IDEM_KEY_MAX,
     .help = "the idempotency key, 1 to 255 bytes"},
    CLI_OPTION_KEY_FILE(&args.key_file),
    {.name = "key-from-args",
     .kind = CLI_FLAG,
     .target = &args.key_from_args,
     .help = "make the key of the command line"},
    CLI_OPTION_SCOPE(&args.scope),
    {.name = "fingerprint",
     .kind = CLI_TEXT,
     .target = &args.fingerprint,
     .arg = "WHAT",
     .help = "auto (the command line), none, TEXT or @FILE"},
    {.name = "flavour",
     .kind = CLI_CHOICE,
     .target = &args.flavour.choice,
     .given = &args.has_flavour,
     .arg = "NAME",
     .choices = cli_flavours,
     .help = "the key that another library makes of an event: python, "
             "typescript; unverified: java, dotnet, locker"},
    {.name = "select",
     .kind = CLI_TEXT,
     .target = &args.flavour.select,
     .arg = "JQ",
     .help = "what of the event it makes it of, as a jq program"},
    {.name = "prefix",
     .kind = CLI_ANY_TEXT,
     .target = &args.flavour.prefix,
     .arg = "TEXT",
     .help = "what stands before the # of that key"},
    {.name = "allow-null",
     .kind = CLI_FLAG,
     .target = &args.flavour.allow_null,
     .help = "take null, although every event without it has that key"},
    CLI_OPTION_JSON(&args.json),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem key -k order-42              # the id that the store files it under",
    "idem key -k order-42 -- charge 42 # what idem run would compare",
    "idem key --key-from-args -- charge 42",
    "idem key --flavour typescript --prefix pay --select .body.id @event.json",
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
