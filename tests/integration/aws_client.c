/* Drives aws/client/transport from a script on stdin, for aws_transport.py.
 *
 *     aws_client URL [NAME=VALUE ...]
 *
 *     post NAME TIMEOUT_MS FLAGS TARGET BODY   FLAGS: "o" once, "-" none;
 *                                              BODY: =TEXT, @BYTES or %FILE
 *     go [N]        until all are done, or N more
 *     pause MS      do nothing
 *     turn MS       work and wait for this long
 *     abort NAME
 *     clock | counters | fds
 *
 * Answers each with JSON, one object to a line.
 */
#include "aws/client/client.h"
#include "aws/client/transport.h"
#include "base/host.h"

#include <json-c/json.h>

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct post {
    struct idem__aws_request request;
    char name[64], target[128];
    char *body;
    int64_t started_ms, ended_ms;
    struct post *next;
};

static struct idem__aws_client *client;
static struct idem__aws_endpoint endpoint;
static struct post *posts;
static size_t answer_max;
static int64_t wall_off_ms;

static void print(struct json_object *object)
{
    printf("%s\n",
           json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
    fflush(stdout);
    json_object_put(object);
}

static void add_int(struct json_object *object, const char *name, int64_t value)
{
    json_object_object_add(object, name, json_object_new_int64(value));
}

static void add_text(struct json_object *object, const char *name,
                     const char *text)
{
    json_object_object_add(object, name, json_object_new_string(text));
}

static void die(const struct idem_error *error)
{
    struct json_object *object = json_object_new_object();

    add_text(object, "failed", idem_error_name(error->code));
    add_text(object, "text", error->text);
    print(object);
    exit(1);
}

/* ---- The host and the providers ---------------------------------------- */

static int shifted_clock(void *ctx, struct idem_clock_reading *ret_reading)
{
    struct idem_host host = {.ctx = NULL};

    (void)ctx;
    idem__host_default(&host);
    if (host.clock(host.ctx, ret_reading) != 0) {
        return -1;
    }
    ret_reading->wall_ms += wall_off_ms;
    return 0;
}

/* Credentials that expire, come late, or never come, as @kind says. */
struct odd_provider {
    struct idem__aws_provider base;
    struct idem__aws_credentials credentials;
    const char *kind;
    int gets, renewals;
};

static int odd_get(struct idem__aws_provider *provider, int64_t now_ms,
                   const struct idem__aws_credentials **ret,
                   struct idem_error *ret_error)
{
    struct odd_provider *odd = (struct odd_provider *)(void *)provider;

    (void)now_ms;
    odd->gets++;
    if (strcmp(odd->kind, "broken") == 0) {
        ret_error->code = IDEM_ECONFIG;
        strcpy(ret_error->text, "the odd source has no credentials");
        return IDEM_ECONFIG;
    }
    if (strcmp(odd->kind, "never") == 0 ||
        (strcmp(odd->kind, "slow") == 0 && odd->gets < 4)) {
        return 1;
    }
    *ret = &odd->credentials;
    return 0;
}

static bool odd_expired(struct idem__aws_provider *provider, uint64_t serial)
{
    struct odd_provider *odd = (struct odd_provider *)(void *)provider;

    (void)serial;
    odd->renewals++;
    snprintf(odd->credentials.token, sizeof(odd->credentials.token),
             "renewed-%d", odd->renewals);
    return true;
}

static void odd_close(struct idem__aws_provider *provider)
{
    free(provider);
}

static struct idem__aws_provider *odd_provider(const char *kind)
{
    struct odd_provider *odd = calloc(1, sizeof(*odd));

    assert(odd != NULL);
    odd->base.name = "the odd source";
    odd->base.get = odd_get;
    odd->base.expired = odd_expired;
    odd->base.close = odd_close;
    odd->kind = kind;
    strcpy(odd->credentials.access_key, "AKIDODD");
    strcpy(odd->credentials.secret_key, "odd-secret");
    strcpy(odd->credentials.token, "first");
    odd->credentials.expires_ms = IDEM_NEVER;
    return &odd->base;
}

/* ---- Posts ------------------------------------------------------------- */

static struct idem_slice make_body(struct post *post, const char *text)
{
    size_t len, i;

    if (text[0] == '@') {
        len = strtoul(text + 1, NULL, 10);
        post->body = malloc(len + 1);
        assert(post->body != NULL);
        for (i = 0; i < len; i++) {
            post->body[i] = (char)(i * 31 % 251);
        }
    } else if (text[0] == '%') {
        FILE *file = fopen(text + 1, "rb");

        assert(file != NULL);
        post->body = malloc(8 << 20);
        assert(post->body != NULL);
        len = fread(post->body, 1, 8 << 20, file);
        fclose(file);
    } else {
        post->body = strdup(text + 1);
        assert(post->body != NULL);
        len = strlen(post->body);
    }
    return idem_bytes(post->body, len);
}

static void add_post(char *line)
{
    struct post *post = calloc(1, sizeof(*post));
    char *save = NULL;
    const char *flags;

    assert(post != NULL);
    snprintf(post->name, sizeof(post->name), "%s", strtok_r(line, " ", &save));
    post->started_ms = idem__mono_ms();
    post->request.endpoint = &endpoint;
    post->request.deadline_ms =
        post->started_ms + strtol(strtok_r(NULL, " ", &save), NULL, 10);
    flags = strtok_r(NULL, " ", &save);
    post->request.once = strchr(flags, 'o') != NULL;
    snprintf(post->target, sizeof(post->target), "%s",
             strtok_r(NULL, " ", &save));
    post->request.target = strcmp(post->target, "-") == 0 ? NULL : post->target;
    post->request.body = make_body(post, strtok_r(NULL, "", &save));
    post->request.answer_max = answer_max;
    post->request.user = post;
    post->next = posts;
    posts = post;
    idem__aws_submit(client, &post->request);
}

static struct post *find_post(const char *name)
{
    struct post *post = posts;

    while (strcmp(post->name, name) != 0) {
        post = post->next;
    }
    return post;
}

static void show(struct post *post)
{
    static const char *const outcomes[] = {"", "NOT_SENT", "NO_ANSWER",
                                           "ANSWERED"};
    const struct idem__aws_request *request = &post->request;
    struct json_object *object = json_object_new_object();
    char *hex = malloc(2 * request->answer_len + 1);
    size_t i;

    assert(hex != NULL);
    hex[0] = '\0';
    for (i = 0; i < request->answer_len && request->answer_len <= 4096; i++) {
        sprintf(hex + 2 * i, "%02x", request->answer[i]);
    }
    add_text(object, "name", post->name);
    add_text(object, "outcome", outcomes[request->outcome]);
    add_int(object, "status", request->status);
    add_text(object, "code", idem_error_name(request->error.code));
    add_text(object, "text", request->error.text);
    add_int(object, "len", (int64_t)request->answer_len);
    add_text(object, "answer", hex);
    add_text(object, "error_type", request->error_type);
    add_text(object, "request_id", request->request_id);
    add_int(object, "crc32", request->has_crc32);
    add_int(object, "sends", request->sends);
    add_int(object, "signed_anew", request->signed_anew);
    add_int(object, "ms", idem__mono_ms() - post->started_ms);
    print(object);
    free(hex);
}

static void forget(struct post *post)
{
    struct post **at = &posts;

    while (*at != post) {
        at = &(*at)->next;
    }
    *at = post->next;
    idem__aws_request_finish(&post->request);
    free(post->body);
    free(post);
}

static size_t reap(size_t max)
{
    struct idem__aws_request *request;
    size_t n = 0;

    while (n < max && (request = idem__aws_reap(client)) != NULL) {
        show(request->user);
        forget(request->user);
        n++;
    }
    return n;
}

static void go(size_t max)
{
    while (max > 0 && client->in_flight > 0) {
        idem__aws_work(client);
        max -= reap(max);
        if (max > 0 && client->in_flight > 0) {
            idem__aws_wait(client, idem__mono_ms() + 60000);
        }
    }
}

static void turn(int64_t ms)
{
    int64_t end_ms = idem__mono_ms() + ms;

    while (idem__mono_ms() < end_ms) {
        idem__aws_work(client);
        idem__aws_wait(client, end_ms);
    }
}

/* ---- Looking ----------------------------------------------------------- */

static void show_clock(void)
{
    struct json_object *object = json_object_new_object();
    struct idem_clock_reading reading;
    int64_t ms = 0, err_ms = 0;
    bool known;

    assert(shifted_clock(NULL, &reading) == 0);
    known = idem__learned_clock_now(idem__aws_client_clock(client),
                                    reading.boot_ms, &ms, &err_ms);
    add_int(object, "known", known);
    add_int(object, "ms", ms);
    add_int(object, "err_ms", err_ms);
    add_int(object, "true_ms", reading.wall_ms - wall_off_ms);
    print(object);
}

static void show_counters(void)
{
    struct json_object *object = json_object_new_object();
    struct idem__aws_counters counters;

    idem__aws_client_counters(client, &counters);
    add_int(object, "requests", (int64_t)counters.requests);
    add_int(object, "sends", (int64_t)counters.sends);
    add_int(object, "connections", (int64_t)counters.connections);
    add_int(object, "signed_anew", (int64_t)counters.signed_anew);
    add_int(object, "not_sent", (int64_t)counters.not_sent);
    add_int(object, "no_answer", (int64_t)counters.no_answer);
    print(object);
}

/* How many TCP sockets a program run by this process would inherit. */
static void show_fds(void)
{
    struct json_object *object = json_object_new_object();
    int64_t inherited = 0, sockets = 0;
    int fd;

    for (fd = 3; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        int domain = 0;
        socklen_t len = sizeof(domain);

        if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) ||
            (domain != AF_INET && domain != AF_INET6)) {
            continue;
        }
        sockets++;
        inherited += (flags & FD_CLOEXEC) == 0;
    }
    add_int(object, "sockets", sockets);
    add_int(object, "inherited", inherited);
    print(object);
}

static void run_line(char *line)
{
    char *rest = line + strcspn(line, " ");
    int64_t number;

    if (*rest != '\0') {
        *rest++ = '\0';
    }
    number = strtol(rest, NULL, 10);
    if (strcmp(line, "post") == 0) {
        add_post(rest);
    } else if (strcmp(line, "go") == 0) {
        go(number > 0 ? (size_t)number : SIZE_MAX);
    } else if (strcmp(line, "pause") == 0) {
        usleep((useconds_t)number * 1000);
    } else if (strcmp(line, "turn") == 0) {
        turn(number);
    } else if (strcmp(line, "abort") == 0) {
        idem__aws_abort(client, &find_post(rest)->request);
    } else if (strcmp(line, "clock") == 0) {
        show_clock();
    } else if (strcmp(line, "counters") == 0) {
        show_counters();
    } else if (strcmp(line, "fds") == 0) {
        show_fds();
    }
}

int main(int argc, char **argv)
{
    struct idem__aws_endpoint_options where = {.service = "dynamodb",
                                               .service_env = "DYNAMODB"};
    struct idem__aws_options options = {.host = {.clock = shifted_clock}};
    struct idem_error error = {.code = 0};
    static char line[1 << 20];
    int i;

    where.url = idem_str(argc > 1 ? argv[1] : "");
    for (i = 2; i < argc; i++) {
        char *value = strchr(argv[i], '=');

        assert(value != NULL);
        *value++ = '\0';
        if (strcmp(argv[i], "region") == 0) {
            where.region = idem_str(value);
        } else if (strcmp(argv[i], "insecure") == 0) {
            where.insecure = true;
        } else if (strcmp(argv[i], "connections") == 0) {
            options.connections_max = strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "connect_ms") == 0) {
            options.connect_ms = strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "idle_ms") == 0) {
            options.idle_ms = strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "ca") == 0) {
            options.ca_file = value;
        } else if (strcmp(argv[i], "wall_off_ms") == 0) {
            wall_off_ms = strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "answer_max") == 0) {
            answer_max = strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "provider") == 0) {
            options.provider = odd_provider(value);
        }
    }
    if (idem__aws_endpoint_find(&where, &idem__aws_env_process, &endpoint,
                                &error) != 0 ||
        (options.provider == NULL &&
         idem__aws_provider_default(&idem__aws_env_process, endpoint.region,
                                    &options.provider, &error) != 0) ||
        idem__aws_client_open(&options, &client, &error) != 0) {
        die(&error);
    }
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        run_line(line);
    }
    while (posts != NULL) {
        idem__aws_abort(client, &posts->request);
        reap(SIZE_MAX);
    }
    idem__aws_client_close(client);
    idem__aws_provider_close(options.provider);
    return 0;
}
