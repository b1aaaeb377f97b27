/* Writes the configuration of nginx. */
#include "gateway/config.h"

#include "process/host.h"
#include "text/text.h"

#include <ctype.h>
#include <idem/http.h>
#include <inttypes.h>
#include <stddef.h>
#include <unistd.h>

/* nginx passes to its workers only those variables of the environment that its
 * configuration names. The stores and their libraries read these, and all variables of
 * AWS and PostgreSQL. */
static const char *const variables[] = {"HOME", "HTTPS_PROXY",
                                        "IDEM_JOURNAL_DIR", "NO_PROXY",
                                        "XDG_STATE_HOME"};

static void print_variables(FILE *f)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    char **entry;
    size_t i;

    for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        (void)fprintf(f, "env %s;\n", variables[i]);
    }
    for (entry = environ; *entry != NULL; entry++) {
        size_t len = strspn(*entry, letters);

        if ((*entry)[len] == '=' && (strncmp(*entry, "AWS_", 4) == 0 ||
                                     strncmp(*entry, "PG", 2) == 0)) {
            (void)fprintf(f, "env %.*s;\n", (int)len, *entry);
        }
    }
}

/* ---- The parts of nginx.conf --------------------------------------------- */

struct value {
    const char *name;
    const char *text;
};

#define VALUES(...) ((const struct value[]){__VA_ARGS__, {NULL, NULL}})

/* Prints the text of the value that is named at @at, and returns where its name ends;
 * NULL: no value is named there. */
static const char *print_value(FILE *f, const char *at,
                               const struct value *values)
{
    size_t len = strcspn(at, "@\n");

    for (; at[len] == '@' && values->name != NULL; values++) {
        if (strlen(values->name) == len && memcmp(at, values->name, len) == 0) {
            (void)fputs(values->text, f);
            return at + len + 1;
        }
    }
    return NULL;
}

static void print_part(FILE *f, const char *name, const struct value *values)
{
    char mark[32];
    const char *p;
    const char *rest;

    (void)snprintf(mark, sizeof(mark), "\n#: %s\n", name);
    p = strstr(gateway_template, mark) + strlen(mark);
    while (strncmp(p, "#: ", 3) != 0) {
        rest = *p == '@' ? print_value(f, p + 1, values) : NULL;
        if (rest == NULL) {
            (void)fputc(*p, f);
            rest = p + 1;
        }
        p = rest;
    }
}

static void print_text(FILE *f, const char *name)
{
    print_part(f, name, VALUES({NULL, NULL}));
}

/* ---- Directives ---------------------------------------------------------- */

/* @before and @text as one word of nginx. */
static void print_quoted_as(FILE *f, const char *before, const char *text)
{
    (void)fprintf(f, "\"%s", before);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            (void)fputc('\\', f);
        }
        (void)fputc(*text, f);
    }
    (void)fputc('"', f);
}

static void print_quoted(FILE *f, const char *text)
{
    print_quoted_as(f, "", text);
}

static void print_word(FILE *f, const char *directive, const char *word)
{
    (void)fprintf(f, "%s ", directive);
    print_quoted(f, word);
    (void)fputs(";\n", f);
}

/* @list, which has commas, as words of nginx. */
static void print_list(FILE *f, const char *directive, const char *list)
{
    struct idem_slice word;

    (void)fputs(directive, f);
    while (gateway_next_word(&list, &word)) {
        (void)fprintf(f, " %.*s", (int)word.len, (const char *)word.base);
    }
    (void)fputs(";\n", f);
}

static void print_time(FILE *f, const char *directive, int64_t ms)
{
    if (ms == IDEM_NEVER) {
        (void)fprintf(f, "%s never;\n", directive);
    } else if (ms != 0) {
        (void)fprintf(f, "%s %lld%s;\n", directive,
                      (long long)(ms % 1000 == 0 ? ms / 1000 : ms),
                      ms % 1000 == 0 ? "s" : "ms");
    }
}

static void print_number(FILE *f, const char *directive, uint64_t number)
{
    if (number != 0) {
        (void)fprintf(f, "%s %llu;\n", directive, (unsigned long long)number);
    }
}

static void print_main(FILE *f, const struct gateway_config *config)
{
    print_word(f, "load_module", config->module);
    print_text(f, "main");
    if (config->user != NULL) {
        (void)fprintf(f, "user %s;\n", config->user);
    }
    (void)fprintf(f, "worker_processes %llu;\n",
                  (unsigned long long)config->workers);
    /* Requests in flight when the gateway is told to stop may end. */
    print_time(f, "worker_shutdown_timeout", config->timeout_ms);
    print_text(f, "more");
    if (strncmp(config->store, "sqlite:", 7) != 0) {
        print_variables(f);
    }
    print_text(f, "events");
}

/* An ordinary user can write neither to the system's log nor to nginx's usual folders. */
static void print_files(FILE *f, const struct gateway_config *config)
{
    if (config->access_log == NULL) {
        (void)fputs("    access_log off;\n", f);
    } else {
        print_text(f, "log");
        (void)fputs("    access_log ", f);
        print_quoted(f, config->access_log);
        (void)fputs(" idem;\n", f);
    }
    print_text(f, "files");
}

static void print_header_variable(FILE *f, const char *name)
{
    (void)fputs("$http_", f);
    for (; *name != '\0'; name++) {
        (void)fputc(*name == '-' ? '_' : tolower((unsigned char)*name), f);
    }
}

/* The settings that a directive of the module has under the same name. */
enum kind {
    WORD,  /* const char * */
    WORDS, /* The same, with commas. */
    TIME,  /* int64_t, in ms. */
    NUMBER /* uint64_t */
};

#define AT(member) offsetof(struct gateway_config, member)

static const struct setting {
    const char *directive;
    enum kind value;
    size_t at;
} settings[] = {
    {"methods", WORDS, AT(methods)},
    {"key", WORD, AT(key_header)},
    {"key_from", WORD, AT(key_from)},
    {"fingerprint_from", WORD, AT(fingerprint_from)},
    {"outcome", WORD, AT(outcome)},
    {"max_failures", NUMBER, AT(failures_max)},
    {"retry_after", TIME, AT(retry_after_ms)},
    {"replay_headers", WORDS, AT(replay_headers)},
    {"lease", TIME, AT(lease_ms)},
    {"retention", TIME, AT(retention_ms)},
    {"wait", TIME, AT(wait_ms)},
    {"max_request", NUMBER, AT(max_request)},
    {"max_response", NUMBER, AT(max_response)},
};

static void print_setting(FILE *f, const struct gateway_config *config,
                          const struct setting *setting)
{
    const void *at = (const char *)config + setting->at;
    const char *word;
    char directive[64];

    (void)snprintf(directive, sizeof(directive), "    idempotency_%s",
                   setting->directive);
    switch (setting->value) {
    case WORD:
    case WORDS:
        word = *(const char *const *)at;
        if (word != NULL && setting->value == WORD) {
            print_word(f, directive, word);
        } else if (word != NULL) {
            print_list(f, directive, word);
        }
        break;
    case TIME:
        print_time(f, directive, *(const int64_t *)at);
        break;
    case NUMBER:
        print_number(f, directive, *(const uint64_t *)at);
        break;
    }
}

static void print_idempotency(FILE *f, const struct gateway_config *config)
{
    size_t i;

    (void)fputs("    idempotency_store ", f);
    print_quoted(f, config->store);
    if (config->journal != NULL) {
        (void)fputc(' ', f);
        print_quoted_as(f, "journal=", config->journal);
    }
    if (config->end_timeout_ms != 0) {
        (void)fprintf(f, " end_timeout=%lldms",
                      (long long)config->end_timeout_ms);
    }
    (void)fputs(";\n    idempotency_scope ", f);
    if (config->scope_header != NULL) {
        print_header_variable(f, config->scope_header);
    } else {
        (void)fputs("global", f);
    }
    (void)fprintf(f, ";\n    idempotency %s;\n",
                  config->routes != NULL ? "off"
                  : config->required     ? "required"
                                         : "on");
    for (i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        print_setting(f, config, &settings[i]);
    }
    if (config->on_expired_lease != 0) {
        (void)fprintf(f, "    idempotency_on_expired_lease %s;\n",
                      config->on_expired_lease == IDEM_HOLD ? "hold" : "rerun");
    }
}

/* Without these headers a browser shows a script no response. The service adds them to
 * its responses; the gateway adds them to replays and to responses of its own. */
static void print_cors(FILE *f, const struct gateway_config *config)
{
    const char *origins = config->cors_origin;
    const char *more = config->replay_headers;
    bool any = origins != NULL && strcmp(origins, "*") == 0;
    struct idem_slice origin;

    if (origins == NULL) {
        return;
    }
    print_text(f, "cors-allowed");
    if (any) {
        (void)fputs("        ~. \"*\";\n", f);
    }
    while (!any && gateway_next_word(&origins, &origin)) {
        (void)fprintf(f, "        \"%.*s\" $http_origin;\n", (int)origin.len,
                      (const char *)origin.base);
    }
    print_part(f, "cors",
               VALUES({"comma", more != NULL ? "," : ""},
                      {"more", more != NULL ? more : ""}));
}

/* If a request was sent and got no whole response, nginx answers with an error of its
 * own. This gives it the body that the module sends for a response that was cut: the
 * client may ask what became of the request. */
static void print_broken_off(FILE *f, const char *title, int status)
{
    char body[IDEM_HTTP_PROBLEM_MAX];
    char number[16];
    size_t len =
        idem_http_problem_body(IDEM_HTTP_UPSTREAM, idem_bytes(NULL, 0), body);

    (void)snprintf(number, sizeof(number), "%d", status);
    memcpy(strstr(body, "502"), number, strlen("502"));
    body[len - 1] = '\0';
    print_part(f, "broken-off",
               VALUES({"status", number}, {"title", title}, {"body", body}));
}

/* If the service closes an idle connection just when a request is sent over it, nobody
 * knows whether the work was done. So nginx does not keep idle connections for long. */
static void print_upstream(FILE *f, const struct gateway_config *config)
{
    print_part(f, "upstream", VALUES({"server", config->upstream.server}));
}

/* Passes the request to @uri of the service; "": to the target that the client sent. */
static void print_proxy(FILE *f, const struct gateway_config *config,
                        const char *uri)
{
    bool tls = config->upstream.tls;
    const char *name = config->upstream.name;

    print_part(f, "proxy",
               VALUES({"scheme", tls ? "https" : "http"}, {"uri", uri},
                      {"host", tls ? name : "$http_host"}));
    print_time(f, "            proxy_read_timeout", config->timeout_ms);
    if (tls) {
        print_part(f, "proxy-tls", VALUES({"host", name}));
    }
}

static void print_location(FILE *f, const struct gateway_config *config,
                           struct idem_slice path, const char *idempotency)
{
    (void)fprintf(f, "        location %.*s {\n%s", (int)path.len,
                  (const char *)path.base, idempotency);
    if (config->authorize != NULL &&
        (config->routes == NULL || *idempotency != '\0')) {
        (void)fputs("            auth_request /.idem-authorize;\n", f);
    }
    print_proxy(f, config, "");
    (void)fputs("        }\n", f);
}

/* nginx asks the service about each request that may have a key, before it looks at the
 * key: with the headers of the client, and without its body. Other requests pass, so
 * that the service answers a browser's preflight, which has no credentials. */
static void print_authorize(FILE *f, const struct gateway_config *config)
{
    const char *methods =
        config->methods != NULL ? config->methods : "POST,PATCH";

    if (config->authorize == NULL) {
        return;
    }
    print_text(f, "authorize");
    (void)fputs("            if ($request_method !~ \"^(", f);
    for (; *methods != '\0'; methods++) {
        (void)fputc(*methods == ',' ? '|' : *methods, f);
    }
    (void)fputs(")$\") {\n", f);
    print_text(f, "authorize-all");
    print_proxy(f, config, config->authorize);
    (void)fputs("        }\n", f);
}

static void print_server(FILE *f, const struct gateway_config *config)
{
    bool tls = config->tls_cert != NULL;
    const char *routes = config->routes;
    struct idem_slice route;
    char listen[NET_TEXT_MAX + 16];

    (void)snprintf(listen, sizeof(listen), "%s%s", config->listen,
                   tls ? " ssl http2" : "");
    print_part(f, "server", VALUES({"listen", listen}));
    if (tls) {
        print_word(f, "        ssl_certificate", config->tls_cert);
        print_word(f, "        ssl_certificate_key", config->tls_key);
        print_text(f, "tls");
    }
    print_text(f, "problems");
    print_authorize(f, config);
    print_location(f, config, idem_str("/"), "");
    while (routes != NULL && gateway_next_word(&routes, &route)) {
        print_location(f, config, route,
                       config->required ? "            idempotency required;\n"
                                        : "            idempotency on;\n");
    }
    (void)fputs("    }\n", f);
}

/* A table in the layout of another library has no scopes. */
static bool has_scopes(const char *store)
{
    return strncmp(store, "dynamodb:", 9) != 0 ||
           strstr(store, "layout=") == NULL;
}

/* A probe is an operation of its own: the gateway claims, executes and records it in
 * its store, and does not pass it to the service. Its lease is the shortest that every
 * store takes. Its record is past its retention when the next probe comes, so that one
 * record is written again each time. Two probes at once share an execution, and a probe
 * takes over the attempt that a killed gateway left. Host and port are in the key,
 * because gateways share stores. A client that used this key would make probes fail, so
 * the key is in a scope of the gateway, or has a secret at its end if the store has no
 * scopes.
 *
 *     GET / at the address for probes -> POST with a key to probe.sock
 *         -> claimed -> /end, which answers 204 -> recorded -> 204
 */
static void print_health(FILE *f, const struct gateway_config *config)
{
    bool scoped = has_scopes(config->store);
    char secret[32] = "";
    uint64_t random = 0;

    if (config->health == NULL) {
        return;
    }
    if (!scoped) {
        (void)cli_random(&random, sizeof(random));
        (void)snprintf(secret, sizeof(secret), "-%016" PRIx64, random);
    }
    print_part(f, "health",
               VALUES({"listen", config->health}, {"secret", secret},
                      {"scope", scoped ? "\"idem gateway\"" : "global"}));
}

void gateway_config_print(FILE *f, const struct gateway_config *config)
{
    (void)fputs("# Written by idem gateway.\n", f);
    print_main(f, config);
    print_files(f, config);
    print_idempotency(f, config);
    print_cors(f, config);
    print_upstream(f, config);
    print_broken_off(f, "Bad Gateway", 502);
    print_broken_off(f, "Gateway Timeout", 504);
    print_server(f, config);
    print_health(f, config);
    (void)fputs("}\n", f);
}
