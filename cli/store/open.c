/* Opens the store of a command. */
#include "store/open.h"

#include "options/command.h"
#include "process/descriptors.h"
#include "process/host.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <errno.h>
#include <stdlib.h>

/* ---- The index of a list ---- */

/* The index holds the open records, and those completed with a failure, in an order of
 * its own. */
bool cli_index_serves(const struct idem_filter *filter)
{
    return filter->overdue || filter->failed_outcomes ||
           (filter->statuses != 0 &&
            (filter->statuses & 1u << IDEM_STATUS_COMPLETED) == 0);
}

/* ---- Meters ---- */

struct idem_meter *cli_meter(void)
{
    static struct idem_meter *meter;
    static bool tried;
    const char *path = secure_getenv("IDEM_METER");
    struct idem_error error = {0};

    if (tried || path == NULL || *path == '\0') {
        return meter;
    }
    tried = true;
    if (idem_meter_open(path, IDEM_METER_CREATE, &meter, &error) != 0) {
        cli_say("IDEM_METER: %s; nothing is counted", error.text);
        meter = NULL;
    }
    return meter;
}

void cli_metered(struct idem_open_options *options)
{
    struct idem_meter *meter = cli_meter();

    if (meter != NULL) {
        options->observe = idem_meter_observe;
        options->observe_ctx = meter;
    }
}

/* ---- Patience ---- */

#define REMOTE_MS 2000
#define LOCAL_MS                                                               \
    10000 /* Only other processes delay it, and they release its lock. */
#define LONGEST_MS 3600000 /* The longest timeout that a store takes. */
#define MEBIBYTE_MS 1000   /* The time that a slow line takes for one. */

int cli_patience_choose(const struct cli_command *command,
                        struct cli_patience *ret_patience)
{
    const char *text = secure_getenv("IDEM_STORE_TIMEOUT");
    struct idem_error error = {0};

    ret_patience->chosen_ms = 0;
    if (text == NULL || *text == '\0') {
        return 0;
    }
    if (idem_setting_read(IDEM_SETTING_STORE_TIMEOUT, "IDEM_STORE_TIMEOUT",
                          text, &ret_patience->chosen_ms, &error) != 0) {
        return cli_usage(command, "%s", error.text);
    }
    return 0;
}

int64_t cli_patience_ms(const struct cli_patience *patience,
                        const struct idem_store *store, size_t bytes)
{
    int64_t ms = patience->chosen_ms;

    if (ms == 0) {
        ms = idem_store_is_remote(store) ? REMOTE_MS : LOCAL_MS;
    }
    return ms + (int64_t)(bytes >> 20) * MEBIBYTE_MS;
}

void cli_patience_set(struct idem_store *store, int64_t ms)
{
    if (ms > LONGEST_MS) {
        ms = LONGEST_MS;
    }
    (void)idem_store_set_timeout(store, ms < 1 ? 1 : ms, NULL);
}

/* ---- Opening ---- */

bool cli_store_must_exist;

/* A person who reads or decides learns soon that the store is unavailable. A command on
 * whose answer work depends waits longer. */
#define PERSON_TIMEOUT_MS 3200

/* The URL of the default store. Creates its directory if @make. */
static int default_url(bool make, char **ret_url)
{
    char *path = cli_state_path("idem.db");
    char *url;

    if (path == NULL && errno == ENOENT) {
        cli_say("no home directory for the records; name a store: "
                "--store sqlite:PATH or IDEM_STORE");
        return CLI_CONFIG;
    }
    if (path == NULL || asprintf(&url, "sqlite:%s", path) < 0) {
        free(path);
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    if (make && cli_make_directories(path) != 0) {
        cli_say("cannot create the directory %s: %s", path, strerror(errno));
        free(path);
        free(url);
        return CLI_DENIED;
    }
    free(path);
    *ret_url = url;
    return 0;
}

/* A copy of @url, which the user gave by @source. */
static int given_url(const char *url, const char *source, char **ret_url)
{
    char shown[256];
    char *copy;

    if (strchr(url, ':') == NULL) {
        (void)cli_escape(idem_str(url), shown, sizeof(shown));
        cli_say("%s: \"%s\" is not the URL of a store; did you mean sqlite:%s",
                source, shown, shown);
        return CLI_USAGE;
    }
    copy = strdup(url);
    if (copy == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    *ret_url = copy;
    return 0;
}

static int add_no_create(char **url)
{
    char *more;

    if (strncmp(*url, "sqlite:", 7) != 0 || strstr(*url, "create=no") != NULL) {
        return 0;
    }
    if (asprintf(&more, "%s%ccreate=no", *url,
                 strchr(*url, '?') == NULL ? '?' : '&') < 0) {
        free(*url);
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    free(*url);
    *url = more;
    return 0;
}

static int find_url(const char *store_url, bool make, char **ret_url)
{
    const char *source = "--store";

    if (store_url == NULL) {
        store_url = secure_getenv("IDEM_STORE");
        source = "IDEM_STORE";
    }
    if (store_url == NULL || *store_url == '\0') {
        return default_url(make, ret_url);
    }
    return given_url(store_url, source, ret_url);
}

int cli_store_url(const char *store_url, bool make, char **ret_url)
{
    int status = find_url(store_url, make && !cli_store_must_exist, ret_url);

    return status == 0 && cli_store_must_exist ? add_no_create(ret_url)
                                               : status;
}

int cli_store_failed(const struct idem_error *error)
{
    if (error->code != IDEM_ENOTFOUND) {
        return cli_fail_with(error);
    }
    cli_say("%s", error->text);
    return CLI_CONFIG;
}

static int open_url(const char *url, unsigned flags,
                    const struct idem_host *host, int64_t wait_ms,
                    struct idem_store **ret_store)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    bool is_file = strncmp(url, "sqlite:", 7) == 0;
    struct cli_descriptors noted;
    struct idem_error error = {0};
    int64_t usual_ms = options.timeout_ms;

    if (!is_file) {
        cli_descriptors_note(&noted);
    } else if (wait_ms > usual_ms) {
        options.timeout_ms = wait_ms < LONGEST_MS ? wait_ms : LONGEST_MS;
    }
    options.flags = flags & ~(CLI_OPEN_FOR_PERSON | CLI_OPEN_TO_SERVE);
    if ((flags & CLI_OPEN_TO_SERVE) == 0) {
        options.cache_max = 0; /* A command asks once. */
    }
    if (!is_file && (flags & (CLI_OPEN_FOR_PERSON | IDEM_OPEN_READONLY)) != 0) {
        options.timeout_ms = PERSON_TIMEOUT_MS;
    }
    if (host != NULL) {
        options.host = *host;
    }
    options.result_max = IDEM_RESULT_MAX; /* --max-output is the limit. */
    cli_metered(&options);
    error.code = idem_open(url, &options, ret_store, &error);
    if (!is_file) {
        cli_descriptors_keep(&noted);
    }
    if (error.code != 0) {
        return cli_store_failed(&error);
    }
    if (options.timeout_ms > usual_ms) {
        (void)idem_store_set_timeout(*ret_store, usual_ms, NULL);
    }
    return 0;
}

static int open_store(const char *store_url, unsigned flags,
                      const struct idem_host *host, int64_t wait_ms,
                      struct idem_store **ret_store)
{
    bool may_create = (flags & (IDEM_OPEN_READONLY | IDEM_OPEN_NO_CREATE)) == 0;
    char *url;
    int status;

    status = cli_store_url(store_url, may_create, &url);
    if (status == 0) {
        status = open_url(url, flags, host, wait_ms, ret_store);
        free(url);
    }
    return status;
}

int cli_open_store_as(const char *store_url, unsigned flags,
                      const struct idem_host *host,
                      struct idem_store **ret_store)
{
    return open_store(store_url, flags, host, /* wait_ms= */ 0, ret_store);
}

int cli_open_store_to_wait(const char *store_url, unsigned flags,
                           const struct idem_host *host, int64_t *wait_ms,
                           struct idem_store **ret_store)
{
    int64_t before_ms = cli_mono_ms();
    int status = open_store(store_url, flags, host, *wait_ms, ret_store);

    if (*wait_ms > 0) {
        *wait_ms -= cli_mono_ms() - before_ms;
        *wait_ms = *wait_ms < 1 ? 1 : *wait_ms;
    }
    return status;
}

static int stop_at_once(void *ctx, int code, const struct idem_record *record)
{
    bool *any = ctx;

    (void)code;
    (void)record;
    *any = true;
    return 1;
}

int cli_store_look(struct idem_store *store, int64_t *ret_now_ms, bool *ret_any,
                   struct idem_error *ret_error)
{
    struct idem_filter filter = IDEM_FILTER_INIT;

    *ret_any = false;
    return idem_list(store, &filter, stop_at_once, ret_any, ret_now_ms,
                     ret_error);
}

int cli_store_ask(struct idem_store *store)
{
    const struct idem_open_options usual = IDEM_OPEN_OPTIONS_INIT;
    struct idem_slice key = idem_str("is it there?");
    struct idem_answer *answer = NULL;
    struct idem_error error = {0};

    if (!idem_store_is_remote(store)) {
        return 0;
    }
    (void)idem_store_set_timeout(store, PERSON_TIMEOUT_MS, NULL);
    error.code = idem_get(store, idem_bytes(NULL, 0), key, &answer, &error);
    idem_answer_destroy(answer);
    (void)idem_store_set_timeout(store, usual.timeout_ms, NULL);
    return error.code == 0 || error.code == IDEM_ENOTFOUND
               ? 0
               : cli_fail_with(&error);
}

int cli_open_store(const char *store_url, unsigned flags,
                   struct idem_store **ret_store)
{
    return cli_open_store_as(store_url, flags, /* host= */ NULL, ret_store);
}
