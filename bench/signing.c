/* CPU of a request: signed by src/aws, or sent as it is by libcurl alone.
 *
 * Usage: signing URL raw|ours get|put IN_FLIGHT REQUESTS
 *
 * Both keep connections, reuse easy handles, and read the whole answer. The raw
 * one sends the same headers, made once, with curl_multi_perform() and
 * curl_multi_poll(). Prints CPU and wall time of each request in us. Makes the
 * table itself.
 */
#include "aws/curl.h"
#include "aws/transport.h"
#include "base/host.h"

#include <curl/curl.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define IN_FLIGHT_MAX 64

static const char create[] =
    "{\"TableName\":\"signing\",\"BillingMode\":\"PAY_PER_REQUEST\","
    "\"AttributeDefinitions\":[{\"AttributeName\":\"id\",\"AttributeType\":"
    "\"S\"}],\"KeySchema\":[{\"AttributeName\":\"id\",\"KeyType\":\"HASH\"}]}";
static const char get[] =
    "{\"TableName\":\"signing\",\"Key\":{\"id\":{\"S\":\"a\"}},"
    "\"ConsistentRead\":true}";
static char put[2048];

static struct idem__aws_credentials credentials = {
    .access_key = "AKIDBENCH",
    .secret_key = "secretsecretsecretsecretsecretsecretsecr",
    .expires_ms = IDEM_NEVER,
};

static int provide(struct idem__aws_provider *provider, int64_t now_ms,
                   const struct idem__aws_credentials **ret,
                   struct idem_error *ret_error)
{
    (void)provider;
    (void)now_ms;
    (void)ret_error;
    *ret = &credentials;
    return 0;
}

static struct idem__aws_provider provider = {.name = "bench", .get = provide};

static void die(const char *text)
{
    fprintf(stderr, "signing: %s\n", text);
    exit(1);
}

static int64_t now_ns(clockid_t clock)
{
    struct timespec ts;

    (void)clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---- Ours ---- */

static struct idem__aws_client *client_open(size_t connections)
{
    struct idem__aws_options options = {.provider = &provider,
                                        .connections_max = connections};
    struct idem__aws_client *client;
    struct idem_error error;

    if (idem__aws_client_open(&options, &client, &error) != 0) {
        die(error.text);
    }
    return client;
}

/* Sends @total requests, @in_flight at a time. */
static void ours(struct idem__aws_client *client,
                 const struct idem__aws_endpoint *endpoint, const char *target,
                 const char *body, size_t in_flight, long total, int want)
{
    static struct idem__aws_request requests[IN_FLIGHT_MAX];
    struct idem__aws_request *request;
    long sent = 0, done = 0;
    size_t i;

    for (i = 0; i < in_flight && sent < total; i++, sent++) {
        requests[i].endpoint = endpoint;
        requests[i].target = target;
        requests[i].body = idem_str(body);
        requests[i].deadline_ms = idem__mono_ms() + 10000;
        idem__aws_submit(client, &requests[i]);
    }
    while (done < total) {
        idem__aws_work(client);
        while ((request = idem__aws_reap(client)) != NULL) {
            if (want != 0 && request->status != want) {
                die(request->error.text);
            }
            done++;
            if (sent < total) {
                request->deadline_ms = idem__mono_ms() + 10000;
                idem__aws_submit(client, request);
                sent++;
            }
        }
        if (done < total) {
            idem__aws_wait(client, idem__mono_ms() + 10000);
        }
    }
}

/* ---- Raw ---- */

struct raw {
    CURL *easy;
    char answer[65536];
    size_t len;
};

static size_t take(char *bytes, size_t size, size_t n, void *ctx)
{
    struct raw *raw = ctx;

    if (raw->len + size * n > sizeof(raw->answer)) {
        return 0;
    }
    memcpy(raw->answer + raw->len, bytes, size * n);
    raw->len += size * n;
    return size * n;
}

static struct curl_slist raw_lines[6];

static void raw_setup(const struct idem__curl *curl, struct raw *raw,
                      const char *url, const char *target, const char *body)
{
    static char target_line[160];
    static const char *const lines[] = {
        "Content-Type: application/x-amz-json-1.0",
        "X-Amz-Date: 20260101T000000Z",
        target_line,
        "Authorization: AWS4-HMAC-SHA256 "
        "Credential=AKIDBENCH/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature="
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    };
    size_t i;

    snprintf(target_line, sizeof(target_line), "X-Amz-Target: %s", target);
    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        raw_lines[i].data = (char *)(uintptr_t)lines[i];
        raw_lines[i].next =
            i + 1 < sizeof(lines) / sizeof(lines[0]) ? &raw_lines[i + 1] : NULL;
    }
    raw->easy = curl->easy_init();
    (void)curl->easy_setopt(raw->easy, CURLOPT_URL, url);
    (void)curl->easy_setopt(raw->easy, CURLOPT_HTTPHEADER, raw_lines);
    (void)curl->easy_setopt(raw->easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl->easy_setopt(raw->easy, CURLOPT_TIMEOUT_MS, 10000L);
    (void)curl->easy_setopt(raw->easy, CURLOPT_WRITEFUNCTION, take);
    (void)curl->easy_setopt(raw->easy, CURLOPT_WRITEDATA, raw);
    (void)curl->easy_setopt(raw->easy, CURLOPT_PRIVATE, raw);
    (void)curl->easy_setopt(raw->easy, CURLOPT_POSTFIELDSIZE,
                            (long)strlen(body));
    (void)curl->easy_setopt(raw->easy, CURLOPT_POSTFIELDS, body);
}

/* What the table of functions lacks, because the library does not use it. */
struct more {
    CURLMcode (*perform)(CURLM *, int *);
    CURLMcode (*poll)(CURLM *, struct curl_waitfd *, unsigned, int, int *);
};

static void raw_run(const struct idem__curl *curl, const struct more *more,
                    CURLM *multi, struct raw *raws, size_t in_flight,
                    long total)
{
    long sent = 0, done = 0;
    size_t i;
    int n;

    for (i = 0; i < in_flight && sent < total; i++, sent++) {
        raws[i].len = 0;
        (void)curl->multi_add_handle(multi, raws[i].easy);
    }
    while (done < total) {
        CURLMsg *message;

        (void)more->perform(multi, &n);
        while ((message = curl->multi_info_read(multi, &n)) != NULL) {
            CURL *easy = message->easy_handle;
            struct raw *raw;
            long status = 0;

            if (message->data.result != CURLE_OK) {
                die(curl->easy_strerror(message->data.result));
            }
            (void)curl->easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
            (void)curl->easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&raw);
            if (status != 200) {
                die("raw: not 200");
            }
            (void)curl->multi_remove_handle(multi, easy);
            done++;
            if (sent < total) {
                raw->len = 0;
                (void)curl->multi_add_handle(multi, easy);
                sent++;
            }
        }
        if (done < total) {
            (void)more->poll(multi, NULL, 0, 1000, &n);
        }
    }
}

int main(int argc, char **argv)
{
    struct idem__aws_endpoint_options where = {.service = "dynamodb",
                                               .service_env = "DYNAMODB"};
    struct idem__aws_endpoint endpoint;
    struct idem_error error;
    const struct idem__curl *curl;
    struct idem__aws_client *client;
    struct more more = {curl_multi_perform, curl_multi_poll};
    const char *target, *body;
    size_t in_flight;
    long total;
    int64_t cpu_ns, wall_ns;

    if (argc != 6) {
        die("usage: signing URL raw|ours get|put IN_FLIGHT REQUESTS");
    }
    where.url = idem_str(argv[1]);
    if (idem__aws_endpoint_resolve(&where, &idem__aws_env_process, &endpoint,
                                   &error) != 0 ||
        idem__curl_get(&curl, &error) != 0) {
        die(error.text);
    }
    snprintf(put, sizeof(put),
             "{\"TableName\":\"signing\",\"Item\":{\"id\":{\"S\":\"a\"},"
             "\"data\":{\"S\":\"%01000d\"}}}",
             7);
    in_flight = strtoul(argv[4], NULL, 10);
    in_flight = in_flight > IN_FLIGHT_MAX ? IN_FLIGHT_MAX : in_flight;
    total = strtol(argv[5], NULL, 10);
    target = strcmp(argv[3], "get") == 0 ? "DynamoDB_20120810.GetItem"
                                         : "DynamoDB_20120810.PutItem";
    body = strcmp(argv[3], "get") == 0 ? get : put;

    client = client_open(in_flight);
    ours(client, &endpoint, "DynamoDB_20120810.CreateTable", create, 1, 1, 0);
    ours(client, &endpoint, "DynamoDB_20120810.PutItem", put, 1, 1, 200);
    if (strcmp(argv[2], "ours") == 0) {
        ours(client, &endpoint, target, body, in_flight, 500, 200);
        wall_ns = now_ns(CLOCK_MONOTONIC);
        cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        ours(client, &endpoint, target, body, in_flight, total, 200);
    } else {
        static struct raw raws[IN_FLIGHT_MAX];
        CURLM *multi = curl->multi_init();
        size_t i;

        for (i = 0; i < in_flight; i++) {
            raw_setup(curl, &raws[i], endpoint.url, target, body);
        }
        raw_run(curl, &more, multi, raws, in_flight, 500);
        wall_ns = now_ns(CLOCK_MONOTONIC);
        cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        raw_run(curl, &more, multi, raws, in_flight, total);
    }
    cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
    wall_ns = now_ns(CLOCK_MONOTONIC) - wall_ns;
    printf("%.2f %.2f\n", (double)cpu_ns / 1000 / (double)total,
           (double)wall_ns / 1000 / (double)total);
    return 0;
}
