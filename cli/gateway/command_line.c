/* The command line of idem gateway: its options, and which of them exclude each other. */
#include "gateway/config.h"
#include "gateway/gateway.h"
#include "options/command.h"
#include "options/common.h"
#include "request/identity.h"
#include "store/open.h"
#include "text/text.h"

#include <idem/key.h>
#include <idem/outcome.h>

#define TIMEOUT_MS 60000

struct gateway_args gateway_args = {
    .config = {.timeout_ms = TIMEOUT_MS, .workers = 1},
    .listen = "127.0.0.1:8080",
};

static int refuse(const struct cli_command *command, const char *option,
                  const char *given, const char *why)
{
    char shown[300];

    return cli_usage(command, "--%s: \"%s\": %s", option,
                     cli_escape(idem_str(given), shown, sizeof(shown)), why);
}

/* Checks a list such as "POST,PATCH". */
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
            return "expected some of POST,PATCH,PUT,DELETE";
        }
        if (text[len] == '\0') {
            return NULL;
        }
        text += len + 1;
    }
}

static int check_outcome(const struct cli_command *command)
{
    const struct gateway_config *config = &gateway_args.config;
    struct idem_outcome_table table;
    struct idem_error error = {0};
    bool retries;
    int status;

    if (idem_outcome_table_read(&table, IDEM_ENDINGS_HTTP, config->outcome,
                                &error) != 0) {
        return cli_usage(command, "--outcome: %s", error.text);
    }
    /* The default is hold. */
    retries =
        idem_outcome_of_none(&table, config->on_expired_lease == IDEM_RERUN
                                         ? IDEM_RERUN
                                         : IDEM_HOLD) == IDEM_STATUS_RETRY;
    for (status = 200; status <= 599 && !retries; status++) {
        retries =
            idem_outcome_of_status(&table, status, NULL) == IDEM_STATUS_RETRY;
    }
    if ((config->failures_max != 0 || config->retry_after_ms != 0) &&
        !retries) {
        return cli_usage(
            command,
            "--%s bounds retries, but no entry of --outcome is retry: use "
            "webhook, or add 5xx=retry",
            config->failures_max != 0 ? "max-failures" : "retry-after");
    }
    return 0;
}

/* Options with one word only, each checked by itself. */
static int check_words(const struct cli_command *command)
{
    const struct gateway_config *config = &gateway_args.config;
    const struct {
        const char *option;
        const char *given;
        const char *(*check)(const char *text);
    } words[] = {
        {"scope-header", config->scope_header, gateway_header_check},
        {"key-header", config->key_header, gateway_header_check},
        {"replay-headers", config->replay_headers,
         gateway_replay_headers_check},
        {"authorize", config->authorize, gateway_uri_check},
        {"methods", config->methods, check_methods},
        {"key-from", config->key_from, gateway_selector_check},
        {"fingerprint-from", config->fingerprint_from, gateway_selector_check},
        {"cors-origin", config->cors_origin, gateway_origins_check},
        {"routes", config->routes, gateway_routes_check},
        {"access-log", config->access_log, gateway_path_check},
        {"tls-cert", config->tls_cert, gateway_path_check},
        {"tls-key", config->tls_key, gateway_path_check},
        {"module", gateway_args.module, gateway_path_check},
        {"user", config->user, gateway_user_check},
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

/* A mistake in a selector is reported in the words of every command, before there is
 * a configuration. */
static int check_selector(const char *option, const char *text)
{
    struct idem_selector *selector;
    int status;

    if (text == NULL) {
        return 0;
    }
    status = cli_extract_open(option, text, &selector);
    if (status == 0) {
        idem_selector_destroy(selector);
    }
    return status;
}

static int check_selectors(void)
{
    int status = check_selector("key-from", gateway_args.config.key_from);

    return status != 0 ? status
                       : check_selector("fingerprint-from",
                                        gateway_args.config.fingerprint_from);
}

int gateway_check_args(const struct cli_command *command, int argc, char **argv,
                       struct gateway_addresses *ret_addresses)
{
    struct gateway_config *config = &gateway_args.config;
    const char *why;
    int status;

    if (argc > 0) {
        return refuse(command, "upstream", argv[0],
                      "give the service with this option");
    }
    if (gateway_args.upstream == NULL) {
        return cli_usage(command, "no service given: --upstream URL");
    }
    if ((config->scope_header != NULL) == gateway_args.global_scope) {
        return cli_usage(
            command,
            "no scope given: --scope-header NAME, if a header names the "
            "client, or --global-scope");
    }
    if (config->scope_header != NULL &&
        strcasecmp(config->scope_header, config->key_header != NULL
                                             ? config->key_header
                                             : "Idempotency-Key") == 0) {
        return refuse(
            command, "scope-header", config->scope_header,
            "the scope names the client, so it cannot be the key itself");
    }
    if (config->key_header != NULL && config->key_from != NULL) {
        return cli_usage(command,
                         "give only one of --key-header and --key-from");
    }
    if ((config->tls_cert != NULL) != (config->tls_key != NULL)) {
        return cli_usage(command, "--tls-cert and --tls-key belong together");
    }
    why = gateway_upstream_parse(gateway_args.upstream, &config->upstream);
    if (why != NULL) {
        return refuse(command, "upstream", gateway_args.upstream, why);
    }
    why = net_address_parse(gateway_args.listen, &ret_addresses->listen);
    if (why != NULL) {
        return refuse(command, "listen", gateway_args.listen, why);
    }
    if (gateway_args.health != NULL) {
        why = net_address_parse(gateway_args.health, &ret_addresses->health);
        if (why != NULL) {
            return refuse(command, "health", gateway_args.health, why);
        }
    }
    status = check_words(command);
    if (status == 0) {
        status = check_outcome(command);
    }
    return status != 0 ? status : check_selectors();
}

struct cli_option gateway_option_table[] = {
    CLI_VALUE("upstream", "URL", CLI_TEXT, &gateway_args.upstream,
              "http[s]://HOST[:PORT] or http://unix:/PATH", .letter = 'u'),
    CLI_VALUE("listen", "ADDR", CLI_TEXT, &gateway_args.listen,
              "PORT, HOST:PORT or unix:/PATH (127.0.0.1:8080)", .letter = 'l'),
    CLI_VALUE("health", "ADDR", CLI_TEXT, &gateway_args.health,
              "answer health probes at ADDR (204: healthy)"),
    CLI_VALUE("scope-header", "NAME", CLI_TEXT,
              &gateway_args.config.scope_header,
              "the trusted header that names the client"),
    CLI_SWITCH("global-scope", &gateway_args.global_scope,
               "all clients share their keys"),
    CLI_SWITCH("required", &gateway_args.config.required,
               "refuse a request that has no key"),
    CLI_VALUE("methods", "LIST", CLI_TEXT, &gateway_args.config.methods,
              "which requests have keys (default: POST,PATCH)"),
    CLI_VALUE("key-header", "NAME", CLI_TEXT, &gateway_args.config.key_header,
              "header with the key (default: Idempotency-Key)"),
    CLI_VALUE("key-from", "SEL", CLI_TEXT, &gateway_args.config.key_from,
              "select the key, as in .body.order_id"),
    CLI_VALUE("fingerprint-from", "SEL", CLI_TEXT,
              &gateway_args.config.fingerprint_from,
              "compare this selection instead of the body"),
    CLI_OPTION_OUTCOME(&gateway_args.config.outcome,
                       "meaning of statuses: \"500=retry 5xx=fail\""),
    CLI_OPTION_MAX_FAILURES(&gateway_args.config.failures_max),
    CLI_OPTION_RETRY_AFTER(&gateway_args.config.retry_after_ms),
    CLI_VALUE("authorize", "URI", CLI_TEXT, &gateway_args.config.authorize,
              "ask the service at URI before each request"),
    CLI_VALUE("replay-headers", "LIST", CLI_TEXT,
              &gateway_args.config.replay_headers,
              "replay these headers too, as in Link"),
    CLI_VALUE("routes", "LIST", CLI_TEXT, &gateway_args.config.routes,
              "only these paths have keys, as in /pay,/orders"),
    CLI_VALUE("cors-origin", "LIST", CLI_TEXT, &gateway_args.config.cors_origin,
              "origins whose scripts may read replays"),
    CLI_VALUE("max-request", "SIZE", CLI_SIZE, &gateway_args.config.max_request,
              "refuse larger requests with keys (default: 16M)",
              .as = IDEM_SETTING_MAX_REQUEST),
    CLI_VALUE("max-response", "SIZE", CLI_SIZE,
              &gateway_args.config.max_response,
              "do not keep a larger response (default: 16M)",
              .as = IDEM_SETTING_MAX_RESULT),
    CLI_VALUE("access-log", "FILE", CLI_TEXT, &gateway_args.config.access_log,
              "log a line for each request to FILE"),
    CLI_VALUE("lease", "TIME", CLI_DURATION, &gateway_args.config.lease_ms,
              "lease duration without renewal (default: 60s)",
              .as = IDEM_SETTING_LEASE),
    CLI_VALUE("retention", "TIME", CLI_DURATION,
              &gateway_args.config.retention_ms,
              "how long a response is replayed (default: 24h)",
              .as = IDEM_SETTING_RETENTION),
    CLI_OPTION_POLICY(
        &gateway_args.config.on_expired_lease,
        "hold: a person must look; rerun: start again (default: hold)"),
    CLI_VALUE("wait", "TIME", CLI_DURATION, &gateway_args.config.wait_ms,
              "how long a duplicate waits for the response",
              .as = IDEM_SETTING_WAIT),
    CLI_VALUE("max-time", "TIME", CLI_DURATION, &gateway_args.config.timeout_ms,
              "how long the service may take (default: 60s)", .min = 1000),
    CLI_VALUE("tls-cert", "FILE", CLI_TEXT, &gateway_args.config.tls_cert,
              "use TLS, and HTTP/2, with this certificate"),
    CLI_VALUE("tls-key", "FILE", CLI_TEXT, &gateway_args.config.tls_key,
              "its private key"),
    CLI_VALUE("workers", "N", CLI_COUNT, &gateway_args.config.workers,
              "worker processes of nginx (default: 1)", .min = 1, .max = 64),
    CLI_VALUE("user", "NAME", CLI_TEXT, &gateway_args.config.user,
              "as root: run as this user", .max = 64),
    CLI_VALUE("nginx", "FILE", CLI_TEXT, &gateway_args.nginx,
              "the nginx program (default: as installed)"),
    CLI_VALUE("module", "FILE", CLI_TEXT, &gateway_args.module,
              "the nginx module (default: as installed)"),
    CLI_OPTION_DRY_RUN(&gateway_args.dry_run,
                       "print the configuration, start nothing"),
    CLI_OPTION_STORE(&gateway_args.store),
    {.name = NULL},
};
