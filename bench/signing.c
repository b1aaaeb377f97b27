/* CPU of a request: signed by aws/client, and sent as it is by libcurl alone.
 *
 * Usage: signing URL get|put IN_FLIGHT REQUESTS ROUNDS
 *
 * Both keep connections, reuse easy handles, and read the whole answer; see raw.h
 * for the other one. They take turns of REQUESTS requests; prints a line for each
 * round: CPU of a request in us, raw and ours. Makes the table itself.
 */
#include "raw.h"

#include "aws/client/transport.h"
#include "base/host.h"

#include <stdio.h>
#include <stdlib.h>
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

static void unsigned_ones(struct raw *raw, const char *target, const char *body,
                          size_t in_flight, long total)
{
    long sent = 0, done = 0;

    while (sent < total && (size_t)sent < in_flight) {
        raw_send(raw_call(raw, (unsigned)sent), target, body);
        sent++;
    }
    while (done < total) {
        struct raw_call *call = raw_reap(raw);

        if (call->status != 200) {
            die("raw: not 200");
        }
        done++;
        if (sent < total) {
            raw_send(call, target, body);
            sent++;
        }
    }
}

/* CPU of each of @total requests, in us. */
static double cpu_us(int64_t since_ns, long total)
{
    return (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - since_ns) / 1000 /
           (double)total;
}

int main(int argc, char **argv)
{
    struct idem__aws_endpoint_options where = {.service = "dynamodb",
                                               .service_env = "DYNAMODB"};
    struct idem__aws_endpoint endpoint;
    struct idem_error error;
    struct idem__aws_client *client;
    struct raw *raw;
    const char *name, *target, *body;
    size_t in_flight;
    long total, rounds, i;

    if (argc != 6) {
        die("usage: signing URL get|put IN_FLIGHT REQUESTS ROUNDS");
    }
    where.url = idem_str(argv[1]);
    if (idem__aws_endpoint_resolve(&where, &idem__aws_env_process, &endpoint,
                                   &error) != 0) {
        die(error.text);
    }
    snprintf(put, sizeof(put),
             "{\"TableName\":\"signing\",\"Item\":{\"id\":{\"S\":\"a\"},"
             "\"data\":{\"S\":\"%01000d\"}}}",
             7);
    in_flight = strtoul(argv[3], NULL, 10);
    in_flight = in_flight > IN_FLIGHT_MAX ? IN_FLIGHT_MAX : in_flight;
    total = strtol(argv[4], NULL, 10);
    rounds = strtol(argv[5], NULL, 10);
    name = strcmp(argv[2], "get") == 0 ? "GetItem" : "PutItem";
    target = strcmp(argv[2], "get") == 0 ? "DynamoDB_20120810.GetItem"
                                         : "DynamoDB_20120810.PutItem";
    body = strcmp(argv[2], "get") == 0 ? get : put;

    client = client_open(in_flight);
    raw = raw_open(endpoint.url, (unsigned)in_flight);
    ours(client, &endpoint, "DynamoDB_20120810.CreateTable", create, 1, 1, 0);
    ours(client, &endpoint, "DynamoDB_20120810.PutItem", put, 1, 1, 200);
    for (i = -1; i < rounds; i++) {
        double cpu[2];
        unsigned turn;

        /* Each goes first as often as the other. */
        for (turn = 0; turn < 2; turn++) {
            bool is_ours = ((i + turn) & 1) != 0;
            int64_t since_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);

            if (is_ours) {
                ours(client, &endpoint, target, body, in_flight, total, 200);
            } else {
                unsigned_ones(raw, name, body, in_flight, total);
            }
            cpu[is_ours] = cpu_us(since_ns, total);
        }
        if (i >= 0) { /* The first is to get warm. */
            printf("%.2f %.2f\n", cpu[0], cpu[1]);
        }
    }
    raw_close(raw);
    idem__aws_client_close(client);
    return 0;
}
