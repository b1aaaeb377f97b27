/* idem gateway: nginx with idem's module in front of an HTTP service. */
#include "gateway/gateway.h"

#include "options/commands.h"
#include "store/journal.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"

#include <errno.h>
#include <idem/journal.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- The configuration -------------------------------------------------- */

/* Frees *@path, which is relative after the prefix @before, and replaces it by an
 * absolute one. 0 or an exit status, after saying why that failed. */
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
    int status = cli_store_url(gateway_args.store, make, ret_url);

    if (status == 0 && is_file(*ret_url) && (*ret_url)[7] != '/') {
        status = make_absolute("sqlite:", ret_url);
    }
    return status;
}

/* The directory of outcomes that wait for the store at @url, in which every command looks
 * for them. NULL: the module keeps them beside the file of the store. */
static int journal_directory(const char *url, bool make, char **ret_directory)
{
    struct idem_journal *journal;
    struct idem_error error = {0};
    char *directory;
    int status = 0;

    error.code = cli_journal_open(make, &journal, &directory, &error);
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

/* Paths in the configuration that only the process that runs nginx can know. */
struct places {
    char *url;
    char *journal;
    char *access_log;
    char *tls_cert;
    char *tls_key;
};

/* Makes *@option, the path that an option gave, independent of where nginx runs. */
static int settle_path(const char **option, char **ret_path)
{
    int status = 0;

    if (*option != NULL && (*option)[0] != '/') {
        *ret_path = strdup(*option);
        status = make_absolute("", ret_path);
        *option = *ret_path;
    }
    return status;
}

static int find_places(bool make, struct places *ret_places)
{
    struct gateway_config *config = &gateway_args.config;
    struct places *places = ret_places;
    const struct {
        const char **option;
        char **path;
    } paths[] = {{&config->access_log, &places->access_log},
                 {&config->tls_cert, &places->tls_cert},
                 {&config->tls_key, &places->tls_key}};
    int status;
    size_t i;

    *places = (struct places){NULL};
    status = store_url(make, &places->url);
    if (status == 0) {
        status = journal_directory(places->url, make, &places->journal);
    }
    for (i = 0; i < sizeof(paths) / sizeof(paths[0]) && status == 0; i++) {
        status = settle_path(paths[i].option, paths[i].path);
    }
    config->store = places->url;
    config->journal = places->journal;
    return status;
}

static void places_finish(struct places *places)
{
    free(places->url);
    free(places->journal);
    free(places->access_log);
    free(places->tls_cert);
    free(places->tls_key);
}

/* Reports what is wrong with the store before nginx starts. Opening it does not ask
 * a remote one, so a key is looked up: a table that is missing, or that these
 * credentials may not read, is noticed here. */
static int try_store(const char *url)
{
    struct idem_error error = {0};
    struct idem_answer *found = NULL;
    struct idem_store *store;
    bool budgets = gateway_args.config.failures_max != 0 ||
                   gateway_args.config.retry_after_ms != 0;
    int status = cli_open_store(url, budgets ? IDEM_OPEN_BUDGETS : 0, &store);
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

/* Prints the configuration, as far as it is known without starting anything. */
static int print_config(const struct gateway_addresses *addresses)
{
    struct net_socket listen;
    struct net_socket health;
    struct places places = {0};
    char *module = NULL;
    int status = net_find("listen", &addresses->listen, &listen);

    if (status == 0 && gateway_args.health != NULL) {
        status = net_find("health", &addresses->health, &health);
        gateway_args.config.health = health.text;
    }
    if (status != 0) {
        goto done;
    }
    status =
        gateway_find_module(gateway_args.module, /* must_be= */ false, &module);
    if (status != 0) {
        goto done;
    }
    status = find_places(/* make= */ false, &places);
    if (status != 0) {
        goto done;
    }
    gateway_args.config.listen = listen.text;
    gateway_args.config.module = module;
    gateway_config_print(stdout, &gateway_args.config);

done:
    free(module);
    places_finish(&places);
    return status;
}

/* ---- Running it -------------------------------------------------------- */

/* The sockets that nginx takes over: that of the gateway, and then that for probes, if
 * there is one. */
struct sockets {
    struct net_socket each[2];
    size_t n;
};

static int open_socket(const char *option, const struct net_address *address,
                       struct sockets *sockets)
{
    struct net_socket *socket = &sockets->each[sockets->n];
    int status = net_find(option, address, socket);

    if (status == 0) {
        status = net_listen(option, socket);
    }
    sockets->n += status == 0;
    return status;
}

static int open_sockets(const struct gateway_addresses *addresses,
                        struct sockets *sockets)
{
    int status = open_socket("listen", &addresses->listen, sockets);

    return status != 0 || gateway_args.health == NULL
               ? status
               : open_socket("health", &addresses->health, sockets);
}

static void close_sockets(struct sockets *sockets)
{
    while (sockets->n > 0) {
        net_remove(&sockets->each[--sockets->n]);
    }
}

static bool is_unix(const struct net_socket *socket)
{
    return socket->at.any.sa_family == AF_UNIX;
}

/* Only the address goes to stdout: a script may want to know it. */
static void tell(void *ctx)
{
    const struct sockets *sockets = ctx;
    const struct net_socket *socket = &sockets->each[0];

    (void)printf("%s%s\n",
                 is_unix(socket)                        ? ""
                 : gateway_args.config.tls_cert != NULL ? "https://"
                                                        : "http://",
                 socket->text);
    (void)fflush(stdout);
    cli_say("in front of %s; records in %s", gateway_args.upstream,
            gateway_args.config.store);
    if (!socket->is_loopback) {
        cli_say("other machines can reach the gateway%s",
                gateway_args.config.tls_cert != NULL ? "" : ", without TLS");
    }
    if (sockets->n > 1) {
        cli_say("probes are answered at %s%s",
                is_unix(&sockets->each[1]) ? "" : "http://",
                sockets->each[1].text);
    }
}

static int serve_in(const char *directory, const char *nginx,
                    struct sockets *sockets)
{
    int status = gateway_upstream_resolve(&gateway_args.config.upstream);

    if (status == 0) {
        status = gateway_check(nginx, directory);
    }
    return status != 0 ? status
                       : gateway_serve(nginx, directory, sockets->each,
                                       sockets->n, tell, sockets);
}

/* Everything that is done as the user that nginx runs as. */
static int serve_as_user(const char *nginx, struct sockets *sockets)
{
    struct gateway_config *config = &gateway_args.config;
    struct places places;
    char *directory;
    int watched;
    int status = find_places(/* make= */ true, &places);

    if (status != 0) {
        goto done;
    }
    status = try_store(places.url);
    if (status != 0) {
        goto done;
    }
    if (geteuid() != 0) {
        config->user = NULL; /* A user that is not root cannot change it. */
    }
    config->listen = sockets->each[0].text;
    config->health = sockets->n > 1 ? sockets->each[1].text : NULL;
    status = gateway_directory_make(config, &directory);
    if (status != 0) {
        goto done;
    }
    watched = gateway_directory_watch(directory);
    status = serve_in(directory, nginx, sockets);
    gateway_directory_remove(directory);
    (void)close(watched);
    free(directory);

done:
    places_finish(&places);
    return status;
}

/* The master of nginx usually reads these files as root, but here it is the user
 * already. A file that the user can read is left to nginx, which reads it again on a
 * reload. */
static void use_copy(const char **path, const char *copy)
{
    if (copy[0] != '\0' && access(*path, R_OK) != 0) {
        *path = copy;
    }
}

static int serve(const struct gateway_addresses *addresses)
{
    struct gateway_config *config = &gateway_args.config;
    struct sockets sockets = {.n = 0};
    char cert[GATEWAY_FILE_MAX];
    char key[GATEWAY_FILE_MAX];
    char *module = NULL;
    char *nginx = NULL;
    int status;

    status = gateway_find_nginx(gateway_args.nginx, &nginx);
    if (status != 0) {
        goto done;
    }
    status =
        gateway_find_module(gateway_args.module, /* must_be= */ true, &module);
    if (status != 0) {
        goto done;
    }
    config->module = module;
    /* Only root may open a port below 1024, and read some files. So these steps come
     * before gateway_become(). */
    status = open_sockets(addresses, &sockets);
    if (status != 0) {
        goto done;
    }
    status = gateway_take_file("--tls-cert", config->tls_cert, cert);
    if (status != 0) {
        goto done;
    }
    status = gateway_take_file("--tls-key", config->tls_key, key);
    if (status != 0) {
        goto done;
    }
    status = gateway_become(config->user);
    if (status != 0) {
        goto done;
    }
    use_copy(&config->tls_cert, cert);
    use_copy(&config->tls_key, key);
    status = gateway_check_readable(module);
    if (status != 0) {
        goto done;
    }
    status = serve_as_user(nginx, &sockets);

done:
    close_sockets(&sockets);
    free(module);
    free(nginx);
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct gateway_addresses addresses;
    struct cli_patience patience;
    int status = gateway_check_args(command, argc, argv, &addresses);

    if (status == 0) {
        status = cli_patience_choose(command, &patience);
    }
    if (status != 0) {
        return status;
    }
    gateway_args.config.end_timeout_ms = patience.chosen_ms;
    return gateway_args.dry_run ? print_config(&addresses) : serve(&addresses);
}

static const char *const examples[] = {
    "idem gateway --upstream http://127.0.0.1:3000 --global-scope",
    "curl -H 'Idempotency-Key: order-42' -d amount=42 localhost:8080/charge",
    "",
    "idem gateway -u http://unix:/run/app.sock -l 8081 --scope-header X-Tenant",
    "idem gateway -u http://127.0.0.1:3000 --global-scope --dry-run",
    NULL,
};

const struct cli_command cli_gateway = {
    .name = "gateway",
    .summary = "put Idempotency-Key in front of an HTTP service",
    .usage = "idem gateway [OPTION...] -u URL "
             "--scope-header NAME|--global-scope",
    .examples = examples,
    .options = gateway_option_table,
    .run = run,
};
