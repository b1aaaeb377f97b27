/* The configuration that nginx is given. */
#include "gateway/config.h"

#include "test.h"

#include <stdlib.h>
#include <string.h>

static const struct gateway_config plain = {
    .module = "/lib/module.so",
    .store = "sqlite:/var/idem.db",
    .listen = "127.0.0.1:8080",
    .upstream = {.server = "app:80", .name = "app"},
    .timeout_ms = 60000,
    .workers = 1,
};

/* The text; the caller frees it. */
static char *text_of(const struct gateway_config *config)
{
    char *text;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    assert_non_null(f);
    gateway_config_print(f, config);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void assert_has(const struct gateway_config *config, const char *line)
{
    char *text = text_of(config);

    if (strstr(text, line) == NULL) {
        fail_with("there is no \"%s\" in:\n%s", line, text);
    }
    free(text);
}

static void assert_has_not(const struct gateway_config *config,
                           const char *line)
{
    char *text = text_of(config);

    if (strstr(text, line) != NULL) {
        fail_with("there is \"%s\" in:\n%s", line, text);
    }
    free(text);
}

/* Whatever must hold of a proxy that does no work twice is said aloud. */
TEST(config, sendsNothingTwice)
{
    assert_has(&plain, "            proxy_http_version 1.1;\n");
    assert_has(&plain, "            proxy_next_upstream off;\n");
    assert_has(&plain, "            proxy_pass http://service;\n");
    assert_has(&plain, "        server app:80;\n");
    assert_has(&plain, "        listen 127.0.0.1:8080;\n");
    assert_has(&plain, "    idempotency_scope global;\n    idempotency on;\n");
}

/* What was not said is left to the module. */
TEST(config, leavesDefaultsToTheModule)
{
    assert_has_not(&plain, "idempotency_lease");
    assert_has_not(&plain, "idempotency_retention");
    assert_has_not(&plain, "idempotency_wait");
    assert_has_not(&plain, "idempotency_methods");
    assert_has_not(&plain, "idempotency_on_expired_lease");
    assert_has_not(&plain, "user ");
    assert_has_not(&plain, "ssl");
    assert_has_not(&plain, "env AWS");
    assert_has(&plain, "env IDEM_METER;\n");
}

/* A selector is one word of nginx, whatever is in it; one that its buffer does not hold
 * is refused. */
TEST(config, quotesSelectors)
{
    struct gateway_config config = plain;
    char large[4002];

    config.key_from = ".a; \"\\{$b}\" # c";
    config.fingerprint_from = ".a\n, .b";
    assert_has(&config, "    idempotency_key_from \".a; "
                        "\\\"\\\\{$b}\\\" # c\";\n");
    assert_has(&config, "    idempotency_fingerprint_from \".a\n, .b\";\n");
    assert_null(gateway_selector_check(config.key_from));
    memset(large, '.', sizeof(large));
    large[4000] = '\0';
    assert_null(gateway_selector_check(large));
    large[0] = '\\';
    assert_non_null(gateway_selector_check(large));
}

/* Each option has its line. */
TEST(config, saysWhatWasAsked)
{
    struct gateway_config config = plain;

    config.journal = "/var/journal";
    config.scope_header = "X-Tenant-ID";
    config.required = true;
    config.methods = "POST,PUT";
    config.lease_ms = 90000;
    config.retention_ms = 7 * 86400000;
    config.wait_ms = 1500;
    config.on_expired_lease = IDEM_RERUN;
    config.timeout_ms = 120000;
    config.workers = 4;
    config.user = "www-data";
    assert_has(&config, "    idempotency_store \"sqlite:/var/idem.db\" "
                        "\"journal=/var/journal\";\n");
    assert_has(&config, "    idempotency_scope $http_x_tenant_id;\n");
    assert_has(&config, "    idempotency required;\n");
    assert_has(&config, "    idempotency_methods POST PUT;\n");
    assert_has(&config, "    idempotency_lease 90s;\n");
    assert_has(&config, "    idempotency_retention 604800s;\n");
    assert_has(&config, "    idempotency_wait 1500ms;\n");
    assert_has(&config, "    idempotency_on_expired_lease rerun;\n");
    assert_has(&config, "            proxy_read_timeout 120s;\n");
    assert_has(&config, "\nworker_shutdown_timeout 120s;\n");
    assert_has(&config, "\nworker_processes 4;\n");
    assert_has(&config, "\nuser www-data;\n");
}

/* TLS towards a service is checked, and its own name is asked for. */
TEST(config, checksCertificates)
{
    struct gateway_config config = plain;

    config.upstream.tls = true;
    assert_has(&config, "            proxy_pass https://service;\n");
    assert_has(&config, "            proxy_set_header Host app;\n");
    assert_has(&config, "            proxy_ssl_name app;\n");
    assert_has(&config, "            proxy_ssl_verify on;\n");
    assert_has(&plain, "            proxy_set_header Host $http_host;\n");
}

/* With a certificate of our own it is TLS and HTTP/2. */
TEST(config, speaksTls)
{
    struct gateway_config config = plain;

    config.tls_cert = "/etc/a \"b\"\\c.pem";
    config.tls_key = "/etc/key.pem";
    assert_has(&config, "        listen 127.0.0.1:8080 ssl http2;\n");
    assert_has(&config,
               "        ssl_certificate \"/etc/a \\\"b\\\"\\\\c.pem\";\n");
    assert_has(&config, "        ssl_certificate_key \"/etc/key.pem\";\n");
}

/* A store that wants credentials finds them. */
TEST(config, handsCredentialsOn)
{
    struct gateway_config config = plain;

    assert_int_equal(setenv("AWS_SECRET_ACCESS_KEY", "secret", 1), 0);
    assert_int_equal(setenv("PGPASSFILE", "/etc/pass", 1), 0);
    assert_int_equal(setenv("PGodd;", "", 1), 0);
    config.store = "dynamodb://idem";
    assert_has(&config, "\nenv AWS_SECRET_ACCESS_KEY;\n");
    assert_has(&config, "    idempotency_store \"dynamodb://idem\";\n");
    config.store = "postgres:///idem";
    assert_has(&config, "\nenv PGPASSFILE;\n");
    assert_has_not(&config, "secret");
    assert_has_not(&config, "PGodd");
}

/* No word that goes into it can become two. */
TEST(config, refusesWhatItCannotSay)
{
    assert_null(gateway_header_check("X-Tenant"));
    assert_null(gateway_header_check("x1"));
    assert_non_null(gateway_header_check(""));
    assert_non_null(gateway_header_check("X_Tenant"));
    assert_non_null(gateway_header_check("X Tenant"));
    assert_non_null(gateway_header_check("X;"));
    assert_non_null(gateway_header_check("$x"));
    assert_non_null(gateway_header_check(
        "a12345678901234567890123456789012345678901234567890123456789012345"));
    assert_null(gateway_path_check("/a b/\"c\"\\d;{}"));
    assert_non_null(gateway_path_check("/a$b"));
    assert_non_null(gateway_path_check("/a\nb"));
}
