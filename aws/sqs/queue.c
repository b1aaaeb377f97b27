/* Finds a queue, and calls it. */
#include "aws/sqs/queue.h"

#include "base/host.h"
#include "base/pace.h"
#include "core/error.h"

#include <stdio.h>

enum {
    TRY_MS = 5000,
    PAUSE_MS = 200,
    PAUSE_CAP_MS = 2000,
};

/* ---- Its endpoint ----------------------------------------------------------- */

static bool is_url(const char *text)
{
    return strncmp(text, "http://", 7) == 0 ||
           strncmp(text, "https://", 8) == 0;
}

/* Returns "https://HOST" of "https://HOST/path". */
static struct idem_slice origin_of(const char *url)
{
    const char *host = strstr(url, "://") + 3;

    return idem_bytes(url, (size_t)(host - url) + strcspn(host, "/"));
}

static bool is_label(const char *at, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(at, word, len) == 0;
}

static bool take_region(const char *at, size_t len, char ret_region[64])
{
    size_t i;

    if (len == 0 || len >= 64) {
        return false;
    }
    for (i = 0; i < len; i++) {
        if ((at[i] < 'a' || at[i] > 'z') && (at[i] < '0' || at[i] > '9') &&
            at[i] != '-') {
            return false;
        }
    }
    memcpy(ret_region, at, len);
    ret_region[len] = '\0';
    return true;
}

bool idem__sqs_region_of(const char *url, char ret_region[64])
{
    const char *before = NULL;
    size_t before_len = 0;
    const char *at;

    if (!is_url(url)) {
        return false;
    }
    at = strstr(url, "://") + 3;
    for (;;) {
        size_t len = strcspn(at, "./:");

        if (is_label(at, len, "sqs") || is_label(at, len, "sqs-fips")) {
            return at[len] == '.' &&
                   at[len + 1 + strcspn(at + len + 1, "./:")] == '.' &&
                   take_region(at + len + 1, strcspn(at + len + 1, "./:"),
                               ret_region);
        }
        if (is_label(at, len, "queue")) {
            return before == NULL ? take_region("us-east-1", 9, ret_region)
                                  : take_region(before, before_len, ret_region);
        }
        if (at[len] != '.') {
            return false;
        }
        before = at;
        before_len = len;
        at += len + 1;
    }
}

static bool is_aws(const struct idem__aws_endpoint *endpoint)
{
    return strstr(endpoint->host, ".amazonaws.com") != NULL ||
           strstr(endpoint->host, ".api.aws") != NULL;
}

/* Finds the endpoint. If no setting names one, uses the host of the queue's URL, which may
 * be an interface endpoint of a VPC, an older name of the service, or an emulator. */
static int find_endpoint(const struct idem__sqs_place *place,
                         const char *region,
                         struct idem__aws_endpoint *ret_endpoint,
                         struct idem_error *error)
{
    struct idem__aws_endpoint_options options = {
        .service = "sqs",
        .service_env = "SQS",
        .region = idem_str(region),
        .insecure = place->insecure,
    };
    int rc = idem__aws_endpoint_find(&options, &idem__aws_env_process,
                                     ret_endpoint, error);

    if (is_url(place->queue) &&
        (rc == IDEM_ECONFIG || (rc == 0 && is_aws(ret_endpoint)))) {
        options.url = origin_of(place->queue);
        rc = idem__aws_endpoint_find(&options, &idem__aws_env_process,
                                     ret_endpoint, error);
    }
    return rc;
}

static int check_place(const struct idem__sqs_place *place,
                       struct idem_error *error)
{
    const char *queue = place->queue;
    size_t len = strlen(queue);
    size_t i;

    for (i = 0; i < len; i++) {
        if (queue[i] <= ' ' || queue[i] > '~' || queue[i] == '"') {
            len = 0;
        }
    }
    if (len == 0 || len >= IDEM__SQS_URL_MAX ||
        (!is_url(queue) && (len > 80 || strpbrk(queue, ":/") != NULL))) {
        return idem__error(error, IDEM_EINVALID,
                           "\"%.80s\" is neither the URL nor the name of a "
                           "queue",
                           queue);
    }
    return 0;
}

static int open_client(struct idem__sqs_queue *queue, struct idem_error *error)
{
    struct idem__aws_options options = {.connections_max = 8};
    int rc = idem__aws_provider_default(&idem__aws_env_process,
                                        queue->endpoint.region,
                                        &queue->provider, error);

    options.provider = queue->provider;
    options.ca_file =
        idem__aws_env_process.get(idem__aws_env_process.ctx, "AWS_CA_BUNDLE");
    return rc != 0 ? rc
                   : idem__aws_client_open(&options, &queue->client, error);
}

static struct idem_slice answer_of(const struct idem__sqs_call *call)
{
    return idem_bytes(call->request.answer, call->request.answer_len);
}

static int find_url(struct idem__sqs_queue *queue,
                    const struct idem__sqs_place *place, int64_t deadline_ms,
                    struct idem_error *error)
{
    struct idem__sqs_call call = {.body = {NULL, 0, 0, false}};
    int rc;

    idem__sqs_queue_url(&call.body, place->queue,
                        place->account == NULL ? "" : place->account);
    rc = idem__sqs_ask(queue, IDEM__SQS_TARGET("GetQueueUrl"), &call,
                       deadline_ms, error);
    if (rc == 0 &&
        idem__sqs_read_queue_url(answer_of(&call), queue->url) != 0) {
        rc = idem__error(error, IDEM_EUNAVAILABLE,
                         "the endpoint is not SQS: it returned no queue URL");
    }
    idem__sqs_call_finish(&call);
    return rc;
}

static int make_url(struct idem__sqs_queue *queue,
                    const struct idem__sqs_place *place,
                    struct idem_error *error)
{
    const char *base = queue->endpoint.url;
    size_t len = strlen(base);
    int n = snprintf(queue->url, sizeof(queue->url), "%s%s%s/%s", base,
                     len > 0 && base[len - 1] == '/' ? "" : "/", place->account,
                     place->queue);

    return n > 0 && (size_t)n < sizeof(queue->url)
               ? 0
               : idem__error(error, IDEM_EINVALID,
                             "the URL of the queue is too long");
}

int idem__sqs_queue_open(const struct idem__sqs_place *place,
                         int64_t deadline_ms, struct idem__sqs_queue *ret_queue,
                         struct idem_error *ret_error)
{
    struct idem__sqs_queue *queue = ret_queue;
    char region[64] = "";
    int rc = check_place(place, ret_error);

    memset(queue, 0, sizeof(*queue));
    if (rc != 0) {
        return rc;
    }
    if (place->region != NULL) {
        (void)snprintf(region, sizeof(region), "%s", place->region);
    } else {
        (void)idem__sqs_region_of(place->queue, region);
    }
    rc = find_endpoint(place, region, &queue->endpoint, ret_error);
    if (rc != 0) {
        goto done;
    }
    rc = open_client(queue, ret_error);
    if (rc != 0) {
        goto done;
    }
    if (is_url(place->queue)) {
        (void)snprintf(queue->url, sizeof(queue->url), "%s", place->queue);
    } else if (place->account != NULL && is_aws(&queue->endpoint)) {
        rc = make_url(queue, place, ret_error);
    } else {
        rc = find_url(queue, place, deadline_ms, ret_error);
    }

done:
    if (rc != 0) {
        idem__sqs_queue_close(queue);
    }
    return rc;
}

int idem__sqs_queue_read(struct idem__sqs_queue *queue, int64_t deadline_ms,
                         struct idem__sqs_attributes *ret_attributes,
                         struct idem_error *ret_error)
{
    struct idem__sqs_call call = {.body = {.len = 0}};
    int rc;

    idem__sqs_attributes(&call.body, queue->url);
    rc = idem__sqs_ask(queue, IDEM__SQS_TARGET("GetQueueAttributes"), &call,
                       deadline_ms, ret_error);
    if (rc == 0 &&
        idem__sqs_read_attributes(answer_of(&call), ret_attributes) != 0) {
        rc = idem__error(ret_error, IDEM_EUNAVAILABLE,
                         "the endpoint is not SQS: it returned no attributes");
    }
    idem__sqs_call_finish(&call);
    return rc;
}

void idem__sqs_queue_close(struct idem__sqs_queue *queue)
{
    idem__aws_client_close(queue->client);
    idem__aws_provider_close(queue->provider);
    memset(queue, 0, sizeof(*queue));
}

/* ---- Calls ------------------------------------------------------------------ */

void idem__sqs_submit(struct idem__sqs_queue *queue, const char *target,
                      struct idem__sqs_call *call, int64_t deadline_ms)
{
    call->request.endpoint = &queue->endpoint;
    call->request.target = target;
    call->request.body = idem__buffer_slice(&call->body);
    call->request.deadline_ms = deadline_ms;
    call->request.answer_max = IDEM__SQS_ANSWER_MAX;
    call->request.user = call;
    idem__aws_submit(queue->client, &call->request);
}

static enum idem__sqs_result ask_once(struct idem__sqs_queue *queue,
                                      const char *target,
                                      struct idem__sqs_call *call,
                                      int64_t deadline_ms,
                                      struct idem_error *error)
{
    int64_t try_ms = idem__time_add(idem__mono_ms(), TRY_MS);

    idem__sqs_submit(queue, target, call,
                     try_ms < deadline_ms ? try_ms : deadline_ms);
    idem__aws_work(queue->client);
    while (idem__aws_reap(queue->client) == NULL) {
        idem__aws_wait(queue->client, try_ms);
        idem__aws_work(queue->client);
    }
    return idem__sqs_classify(&call->request, error);
}

int idem__sqs_ask(struct idem__sqs_queue *queue, const char *target,
                  struct idem__sqs_call *call, int64_t deadline_ms,
                  struct idem_error *ret_error)
{
    unsigned attempt;

    if (call->body.failed) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    for (attempt = 0;; attempt++) {
        struct idem_error error = {0};
        enum idem__sqs_result result =
            ask_once(queue, target, call, deadline_ms, &error);
        int64_t now_ms = idem__mono_ms();
        int64_t until_ms =
            now_ms +
            idem__backoff(attempt, PAUSE_MS, PAUSE_CAP_MS,
                          (uint64_t)idem__mono_ns() * 0x9e3779b97f4a7c15u);

        if (result == IDEM__SQS_OK) {
            return 0;
        }
        /* Do not begin a pause that outlasts the caller's time: Lambda would kill a
         * function during it, and its answer would be lost. */
        if (result != IDEM__SQS_LATER || until_ms >= deadline_ms) {
            return idem__error(ret_error, error.code, "%s", error.text);
        }
        while ((now_ms = idem__mono_ms()) < until_ms) {
            idem__aws_wait(queue->client, until_ms);
            idem__aws_work(queue->client);
        }
    }
}

void idem__sqs_call_finish(struct idem__sqs_call *call)
{
    idem__aws_request_finish(&call->request);
    idem__buffer_free(&call->body);
}
