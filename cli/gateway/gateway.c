/* idem gateway: nginx with our module in front of an HTTP service. */
#include "gateway/gateway.h"

#include "gateway/commands.h"
#include "options/command.h"
#include "options/usage.h"
#include "request/extract.h"
#include "store/journal.h"
#include "store/open.h"
#include "store/patience.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <errno.h>
#include <idem/journal.h>
#include <idem/key.h>
#include <stdlib.h>
#include <unistd.h>

#define TIMEOUT_MS 60000

static const char *const policies[] = {"hold", "rerun", NULL};

static struct {
    struct gateway_config config;
    bool global_scope;
    bool print_config;
    int on_expired_lease;
    const char *listen;
    const char *module;
    const char *nginx;
    const char *store;
    const char *upstream;
} args = {
    .config = {.timeout_ms = TIMEOUT_MS, .workers = 1},
    .on_expired_lease = -1, /* As the module has it. */
    .listen = "127.0.0.1:8080",
};

/* ---- The command line -------------------------------------------------- */

static int refuse(const struct cli_command *command, const char *option,
                  const char *given, const char *why)
{
    char shown[300];

    return cli_usage(command, "--%s: \"%s\": %s", option,
                     cli_escape(idem_str(given), shown, sizeof(shown)), why);
}

/* POST,PATCH and so on. */
static const char *check_methods(const char *text)
{
    static const char *const known[] = {"POST", "PATCH", "PUT", "DELETE"};
    size_t i;

    for (;;) {
        size_t len = strcspn(text, ",");

        for (i = 0; i < 4; i++) {
            if (len == strlen(known[i]) && memcmp(text, known[i], len) == 0) {
                break;
            }
        }
        if (i == 4) {
            return "methods are some of POST,PATCH,PUT,DELETE";
        }
        if (text[len] == '\0') {
            return NULL;
        }
        text += len + 1;
    }
}

/* Options with one word only, each checked by itself. */
static int check_words(const struct cli_command *command)
{
    const struct {
        const char *option;
        const char *given;
        const char *(*check)(const char *text);
    } words[] = {
        {"scope-header", args.config.scope_header, gateway_header_check},
        {"methods", args.config.methods, check_methods},
        {"outcome", args.config.outcomes, gateway_outcomes_check},
        {"key-from", args.config.key_from, gateway_program_check},
        {"fingerprint-from", args.config.fingerprint_from,
         gateway_program_check},
        {"cors-origin", args.config.cors_origin, gateway_origins_check},
        {"routes", args.config.routes, gateway_routes_check},
        {"access-log", args.config.access_log, gateway_path_check},
        {"tls-cert", args.config.tls_cert, gateway_path_check},
        {"tls-key", args.config.tls_key, gateway_path_check},
        {"module", args.module, gateway_path_check},
        {"user", args.config.user, gateway_user_check},
    };
    size_t i;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const char *why =
            words[i].given != NULL ? words[i].check(words[i].given) : NULL;

        if (why != NULL) {
            return refuse(command, words[i].option, words[i].given, why);
        }
    }
    return 0;
}

/* A mistake in a program is reported in the words of every command, before there is
 * a configuration. */
static int check_program(const char *option, const char *program, bool several)
{
    struct idem_select *select;
    int status;

    if (program == NULL) {
        return 0;
    }
    status = cli_extract_open(option, program, several, &select);
    if (status == 0) {
        idem_select_destroy(select);
    }
    return status;
}

static int check_programs(void)
{
    int status = check_program("key-from", args.config.key_from,
                               /* several= */ false);

    return status != 0
               ? status
               : check_program("fingerprint-from", args.config.fingerprint_from,
                               /* several= */ true);
}

static int check(const struct cli_command *command, int argc, char **argv,
                 struct gateway_address *ret_address)
{
    const char *why;
    int status;

    if (argc > 0) {
        return refuse(command, "upstream", argv[0],
                      "say the service with this option");
    }
    if (args.upstream == NULL) {
        return cli_usage(command, "no service given: --upstream URL");
    }
    if ((args.config.scope_header != NULL) == args.global_scope) {
        return cli_usage(
            command,
            "give one of --scope-header NAME, if a header names the client, "
            "and --global-scope");
    }
    if ((args.config.tls_cert != NULL) != (args.config.tls_key != NULL)) {
        return cli_usage(command, "--tls-cert and --tls-key belong together");
    }
    why = gateway_upstream_parse(args.upstream, &args.config.upstream);
    if (why != NULL) {
        return refuse(command, "upstream", args.upstream, why);
    }
    why = gateway_address_parse(args.listen, ret_address);
    if (why != NULL) {
        return refuse(command, "listen", args.listen, why);
    }
    status = check_words(command);
    return status != 0 ? status : check_programs();
}

/* ---- What nginx is told ------------------------------------------------ */

/* @path as it is from any directory; it is freed. 0 or an exit status, after saying
 * why it is not known. */
static int make_absolute(const char *before, char **path)
{
    char *here = getcwd(NULL, 0);
    char *whole = NULL;
    int status = 0;

    if (here == NULL ||
        asprintf(&whole, "%s%s/%s", before, here, *path + strlen(before)) < 0) {
        cli_say("cannot resolve the path %s: %s", *path, strerror(errno));
        status = CLI_CONFIG;
    }
    free(here);
    free(*path);
    *path = whole;
    return status;
}

static bool is_file(const char *url)
{
    return strncmp(url, "sqlite:", 7) == 0;
}

/* The URL of the store, whose path does not depend on where nginx runs. */
static int store_url(bool make, char **ret_url)
{
    int status = cli_store_url(args.store, make, ret_url);

    if (status == 0 && is_file(*ret_url) && (*ret_url)[7] != '/') {
        status = make_absolute("sqlite:", ret_url);
    }
    return status;
}

/* Where outcomes wait that the store at @url did not take: where every command
 * looks for them. NULL: the module has a place beside a file. */
static int journal_directory(const char *url, bool make, char **ret_directory)
{
    struct cli_journal_choice choice = {0};
    struct idem_journal *journal;
    struct idem_error error = {0};
    char *directory;
    int status = cli_journal_choose(&cli_gateway, &choice);

    if (status != 0) {
        return status;
    }
    if (choice.rule == CLI_JOURNAL_OFF) {
        *ret_directory = strdup("off");
        return 0;
    }
    error.code =
        cli_journal_open(/* given= */ NULL, make, &journal, &directory, &error);
    if (error.code == 0) {
        idem_journal_close(journal);
    } else if (make) {
        free(directory);
        directory = NULL;
        if (!is_file(url)) {
            return cli_fail_with(&error);
        }
    }
    if (directory != NULL && directory[0] != '/') {
        status = make_absolute("", &directory);
    }
    *ret_directory = directory;
    return status;
}

/* A fact of the configuration that is known only by the one who runs nginx. */
struct places {
    char *url;
    char *journal;
    char *access_log;
};

static int find_places(bool make, struct places *ret_places)
{
    struct places places = {0};
    int status = store_url(make, &places.url);

    if (status == 0) {
        status = journal_directory(places.url, make, &places.journal);
    }
    if (status == 0 && args.config.access_log != NULL &&
        args.config.access_log[0] != '/') {
        places.access_log = strdup(args.config.access_log);
        status = make_absolute("", &places.access_log);
        args.config.access_log = places.access_log;
    }
    args.config.store = places.url;
    args.config.journal = places.journal;
    *ret_places = places;
    return status;
}

static void places_finish(struct places *places)
{
    free(places->url);
    free(places->journal);
    free(places->access_log);
}

/* Reports what is wrong with the store before nginx starts. Opening it does not ask
 * a remote one, so a key is looked up: a table that is missing, or that these
 * credentials may not read, is noticed here. */
static int try_store(const char *url)
{
    struct idem_error error = {0};
    struct idem_answer *found = NULL;
    struct idem_store *store;
    int status = cli_open_store(url, /* flags= */ 0, &store);
    int code;

    if (status != 0) {
        return status;
    }
    code =
        idem_get(store, idem_str(""), idem_str("idem gateway"), &found, &error);
    if (code != 0 && code != IDEM_ENOTFOUND) {
        status = cli_fail_with(&error);
    }
    idem_answer_destroy(found);
    idem_close(store);
    return status;
}

/* Prints the configuration, as good as it is known without starting anything. */
static int print_config(const struct gateway_address *address)
{
    char listen[GATEWAY_ADDRESS_MAX];
    struct places places = {0};
    char *module = NULL;
    int status = gateway_listen_text(address, listen);

    if (status == 0) {
        status =
            gateway_find_module(args.module, /* must_be= */ false, &module);
    }
    if (status == 0) {
        status = find_places(/* make= */ false, &places);
    }
    if (status == 0) {
        args.config.listen = listen;
        args.config.module = module;
        gateway_config_print(stdout, &args.config);
    }
    free(module);
    places_finish(&places);
    return status;
}

/* ---- Running it -------------------------------------------------------- */

/* The address is the one thing that a script may want to know. */
static void tell(void *ctx)
{
    const struct gateway_socket *socket = ctx;

    (void)printf("%s%s\n",
                 socket->path[0] != '\0'        ? ""
                 : args.config.tls_cert != NULL ? "https://"
                                                : "http://",
                 socket->text);
    (void)fflush(stdout);
    cli_say("in front of %s; records in %s", args.upstream, args.config.store);
    if (!socket->is_loopback) {
        cli_say("other machines can reach it%s",
                args.config.tls_cert != NULL ? "" : ", and it speaks no TLS");
    }
}

static int serve_in(const char *directory, const char *nginx,
                    struct gateway_socket *socket)
{
    int status = gateway_upstream_resolve(&args.config.upstream);

    if (status == 0) {
        status = gateway_check(nginx, directory);
    }
    return status != 0
               ? status
               : gateway_serve(nginx, directory, socket->fd, tell, socket);
}

/* Everything that is done as the user who nginx runs as. */
static int serve_as_user(const char *nginx, struct gateway_socket *socket)
{
    struct places places;
    char *directory;
    int status = find_places(/* make= */ true, &places);

    if (geteuid() != 0) {
        args.config.user = NULL; /* A user that is not root cannot change it. */
    }
    args.config.listen = socket->text;
    if (status == 0) {
        status = try_store(places.url);
    }
    if (status == 0) {
        status = gateway_directory_make(&args.config, &directory);
    }
    if (status == 0) {
        int watched = gateway_directory_watch(directory);

        status = serve_in(directory, nginx, socket);
        gateway_directory_remove(directory);
        (void)close(watched);
        free(directory);
    }
    places_finish(&places);
    return status;
}

static int serve(const struct gateway_address *address)
{
    struct gateway_socket socket;
    char *module = NULL;
    char *nginx = NULL;
    int status;

    status = gateway_find_nginx(args.nginx, &nginx);
    if (status == 0) {
        status = gateway_find_module(args.module, /* must_be= */ true, &module);
    }
    if (status == 0) {
        status = gateway_listen(address, &socket);
    }
    if (status == 0) {
        args.config.module = module;
        status = gateway_become(args.config.user);
        status = status == 0 ? gateway_check_readable(module) : status;
        status = status == 0 ? serve_as_user(nginx, &socket) : status;
        gateway_listen_close(&socket);
    }
    free(module);
    free(nginx);
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct gateway_address address;
    struct cli_patience patience;
    int status = check(command, argc, argv, &address);

    if (status == 0) {
        status = cli_patience_choose(command, &patience);
    }
    if (status != 0) {
        return status;
    }
    args.config.end_timeout_ms = patience.chosen_ms;
    if (args.on_expired_lease >= 0) {
        args.config.on_expired_lease = policies[args.on_expired_lease];
    }
    return args.print_config ? print_config(&address) : serve(&address);
}

static struct cli_option options[] = {
    {.name = "upstream",
     .letter = 'u',
     .kind = CLI_TEXT,
     .target = &args.upstream,
     .arg = "URL",
     .help = "the service: http[s]://HOST[:PORT] or http://unix:/PATH"},
    {.name = "listen",
     .letter = 'l',
     .kind = CLI_TEXT,
     .target = &args.listen,
     .arg = "ADDR",
     .help = "PORT, HOST:PORT or unix:/PATH (default: 127.0.0.1:8080); port 0: "
             "any that is free"},
    {.name = "scope-header",
     .kind = CLI_TEXT,
     .target = &args.config.scope_header,
     .arg = "NAME",
     .help =
         "keys belong to the client that this header names; whoever sets it "
         "must be trusted"},
    {.name = "global-scope",
     .kind = CLI_FLAG,
     .target = &args.global_scope,
     .help = "all clients share their keys"},
    {.name = "required",
     .kind = CLI_FLAG,
     .target = &args.config.required,
     .help = "refuse a request that has no key"},
    {.name = "methods",
     .kind = CLI_TEXT,
     .target = &args.config.methods,
     .arg = "LIST",
     .help = "which requests have keys (default: POST,PATCH)"},
    {.name = "key-from",
     .kind = CLI_TEXT,
     .target = &args.config.key_from,
     .arg = "JQ",
     .help = "take the key from the request, as .body.order_id"},
    {.name = "fingerprint-from",
     .kind = CLI_TEXT,
     .target = &args.config.fingerprint_from,
     .arg = "JQ",
     .help = "compare what this selects, and not the body"},
    {.name = "outcome",
     .kind = CLI_TEXT,
     .target = &args.config.outcomes,
     .arg = "LIST",
     .help = "what a status says of the work, as in 500=retry,502-504=unknown"},
    {.name = "routes",
     .kind = CLI_TEXT,
     .target = &args.config.routes,
     .arg = "LIST",
     .help = "only requests to these paths have keys, as in /pay,/orders"},
    {.name = "cors-origin",
     .kind = CLI_TEXT,
     .target = &args.config.cors_origin,
     .arg = "LIST",
     .help = "origins whose scripts may read our answers"},
    {.name = "max-request",
     .kind = CLI_SIZE,
     .target = &args.config.max_request,
     .arg = "SIZE",
     .help = "refuse larger requests with keys (default: 16M)",
     .min = 1,
     .max = INT64_C(1) << 40},
    {.name = "max-response",
     .kind = CLI_SIZE,
     .target = &args.config.max_response,
     .arg = "SIZE",
     .help = "do not keep a larger answer (default: 16M)",
     .min = 1,
     .max = IDEM_RESULT_MAX},
    {.name = "access-log",
     .kind = CLI_TEXT,
     .target = &args.config.access_log,
     .arg = "FILE",
     .help = "write a line for each request there"},
    {.name = "lease",
     .kind = CLI_DURATION,
     .target = &args.config.lease_ms,
     .arg = "TIME",
     .help = "how long work is taken for alive without a word (default: 60s)",
     .min = 2000,
     .max = IDEM_DURATION_MAX_MS},
    {.name = "retention",
     .kind = CLI_DURATION,
     .target = &args.config.retention_ms,
     .arg = "TIME",
     .help = "how long an answer is replayed (default: 24h)",
     .min = 1000,
     .max = IDEM_DURATION_MAX_MS},
    {.name = "on-expired-lease",
     .kind = CLI_CHOICE,
     .target = &args.on_expired_lease,
     .arg = "POLICY",
     .help = "hold: a person must look; rerun: start again (default: hold)",
     .choices = policies},
    {.name = "wait",
     .kind = CLI_DURATION,
     .target = &args.config.wait_ms,
     .arg = "TIME",
     .help = "let a duplicate wait for the answer before it is refused",
     .min = 1,
     .max = IDEM_DURATION_MAX_MS},
    {.name = "timeout",
     .kind = CLI_DURATION,
     .target = &args.config.timeout_ms,
     .arg = "TIME",
     .help = "how long the service may take (default: 60s)",
     .min = 1000,
     .max = IDEM_DURATION_MAX_MS},
    {.name = "tls-cert",
     .kind = CLI_TEXT,
     .target = &args.config.tls_cert,
     .arg = "FILE",
     .help = "speak TLS, and HTTP/2, with this certificate"},
    {.name = "tls-key",
     .kind = CLI_TEXT,
     .target = &args.config.tls_key,
     .arg = "FILE",
     .help = "its private key"},
    {.name = "workers",
     .kind = CLI_COUNT,
     .target = &args.config.workers,
     .arg = "N",
     .help = "processes of nginx that work (default: 1)",
     .min = 1,
     .max = 64},
    {.name = "user",
     .kind = CLI_TEXT,
     .target = &args.config.user,
     .arg = "NAME",
     .help = "as root: run as this user",
     .max = 64},
    {.name = "nginx",
     .kind = CLI_TEXT,
     .target = &args.nginx,
     .arg = "FILE",
     .help = "the program (default: where it is installed)"},
    {.name = "module",
     .kind = CLI_TEXT,
     .target = &args.module,
     .arg = "FILE",
     .help = "its module (default: likewise)"},
    {.name = "print-config",
     .kind = CLI_FLAG,
     .target = &args.print_config,
     .help = "print the configuration and start nothing"},
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem gateway --upstream http://127.0.0.1:3000 --global-scope",
    "curl -H 'Idempotency-Key: order-42' -d amount=42 localhost:8080/charge",
    "",
    "idem gateway -u http://unix:/run/app.sock -l 8081 --scope-header X-Tenant",
    "idem gateway -u http://127.0.0.1:3000 --global-scope --print-config",
    NULL,
};

const struct cli_command cli_gateway = {
    .name = "gateway",
    .summary = "put Idempotency-Key in front of an HTTP service",
    .usage = "idem gateway [OPTION...] -u URL "
             "--scope-header NAME|--global-scope",
    .examples = examples,
    .options = options,
    .run = run,
};
