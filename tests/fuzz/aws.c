/* What an AWS service says. The first byte of the input says what the rest is:
 *
 * - an answer, with a status and the name of an error. It means that the request
 *   was applied, or that it was not, only where the service says so in words that
 *   are known; anything else leaves that open. What is shown of it is UTF-8
 *   without control characters.
 * - a date. It is read as a calendar reads it, and the time of a signature is
 *   written as a calendar writes it.
 * - the address of a table. It is written as one that leads from anywhere to the
 *   same table, at the same place.
 * - the answers of honest hosts, and now and then a liar. The service's time
 *   stays within the interval that the clock has learned.
 */
#include "aws/client/clock.h"
#include "aws/dynamodb/place.h"
#include "aws/dynamodb/task/answer.h"
#include "fuzz.h"
#include "text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void read_answer(struct tape *tape)
{
    static const int statuses[] = {200, 400, 403, 404, 413, 500,
                                   503, 204, 301, 999, 0};
    struct idem__aws_request request = {.outcome = IDEM__AWS_ANSWERED};
    struct idem_slice type;
    struct idem_slice body;
    struct idem__answer answer;
    struct idem__aws_error error;
    uint8_t *bytes;

    request.status = statuses[take_up_to(tape, 10)];
    request.sends = 1 + take_up_to(tape, 1);
    type = take_bytes(tape, sizeof(request.error_type) - 1);
    if (type.len > 0) {
        memcpy(request.error_type, type.base, type.len);
    }
    body = take_rest(tape);
    bytes = malloc(body.len + 1); /* The reader must not go one further. */
    must(bytes != NULL);
    if (body.len > 0) {
        memcpy(bytes, body.base, body.len);
    }
    request.answer = bytes;
    request.answer_len = body.len;
    idem__answer_read(&request, "orders", &answer);
    idem__aws_error_parse(request.status, request.error_type,
                          idem_bytes(bytes, body.len), &error);

    must(answer.sent);
    must((answer.said == IDEM__SAID_OK) ==
         (request.status == 200 &&
          (answer.body != NULL ||
           (body.len == 2 && memcmp(body.base, "{}", 2) == 0))));
    must((error.meaning != IDEM__AWS_SKEWED &&
          error.meaning != IDEM__AWS_EXPIRED) ||
         idem__aws_error_may_be_stale(request.error_type,
                                      idem_bytes(bytes, body.len)));
    must(answer.said != IDEM__SAID_REFUSED ||
         (request.status == 400 &&
          idem__aws_error_is(&error, "ConditionalCheckFailedException")));
    if (answer.said == IDEM__SAID_NOT_APPLIED ||
        answer.said == IDEM__SAID_NEVER) {
        must(request.status >= 400 && request.status <= 499);
        must(error.type[0] != '\0');
        must(answer.error.code != 0);
    }
    must((answer.said != IDEM__SAID_NOT_APPLIED &&
          answer.said != IDEM__SAID_NEVER) ||
         request.sends == 1);
    must(answer.said != IDEM__SAID_UNKNOWN ||
         answer.error.code == IDEM_EUNKNOWN || request.sends > 1);
    must((error.meaning == IDEM__AWS_SUCCESS) == (request.status == 200));
    must(cli_is_utf8(idem_str(error.type)));
    must(strpbrk(error.message, "\n\r\t\x1b\x7f") == NULL);
    idem__answer_finish(&answer);
    free(bytes);
}

/* The only form, and its leap seconds. */
static void read_date(struct idem_slice text)
{
    char *copy = text_of(text);
    char again[64];
    struct tm tm = {.tm_isdst = 0};
    int64_t ms;
    time_t s;

    if (idem__aws_date_parse(text, &ms)) {
        char *end = strptime(copy, "%a, %d %b %Y %H:%M:%S GMT", &tm);

        must(end != NULL && *end == '\0');
        must((int64_t)timegm(&tm) * 1000 == ms);
        s = (time_t)(ms / 1000);
        must(gmtime_r(&s, &tm) != NULL);
        (void)strftime(again, sizeof(again), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        must(strcmp(again, copy) == 0 || strstr(copy, ":60 GMT") != NULL);
    }
    free(copy);
}

static void write_stamp(int64_t ms)
{
    char stamp[IDEM__AWS_STAMP_LEN + 1];
    char theirs[32];
    struct tm tm;
    time_t s = (time_t)(ms / 1000);

    idem__aws_stamp(ms, stamp);
    must(strlen(stamp) == IDEM__AWS_STAMP_LEN);
    if (ms >= 0 && ms <= 253402300799999) {
        must(gmtime_r(&s, &tm) != NULL);
        (void)strftime(theirs, sizeof(theirs), "%Y%m%dT%H%M%SZ", &tm);
        must(strcmp(stamp, theirs) == 0);
    }
}

/* The true time is what @offset says; each host's clock is off by a little less
 * than what the learner allows for. */
static void learn_time(struct tape *tape)
{
    const int64_t offset_ms = FUZZ_NOW_MS - FUZZ_BOOT_MS + take_u8(tape) * 17;
    struct idem__learned_clock clock = {.known = false};
    int64_t boot_ms = FUZZ_BOOT_MS;
    unsigned since_lie = 0;

    while (tape->left > 3) {
        int64_t sent_ms = boot_ms + take_u8(tape) * take_u8(tape);
        int64_t made_ms = sent_ms + take_u8(tape) * 20;
        int64_t got_ms = made_ms + take_u8(tape) * 20;
        int64_t date_ms = made_ms + offset_ms + take_up_to(tape, 255) - 127;
        bool lies = clock.known && since_lie > 8 && take_up_to(tape, 7) == 0;
        int64_t ms;
        int64_t err_ms;

        since_lie = lies ? 0 : since_lie + 1;
        if (lies) {
            date_ms += ((int64_t)take_u8(tape) - 128) * 86400000;
        }
        date_ms -= date_ms % 1000;
        must(idem__aws_clock_learn(&clock, sent_ms, got_ms, date_ms,
                                   got_ms + offset_ms));
        must(idem__learned_clock_now(&clock, got_ms, &ms, &err_ms));
        must(err_ms >= 0);
        must(ms - err_ms <= got_ms + 1 + offset_ms);
        must(ms + err_ms >= got_ms + offset_ms);
        boot_ms = got_ms;
    }
}

static const char *no_variable(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
    return NULL;
}

/* 0, and where it leads to. */
static int find_table(const char *text, struct idem__place_conf *conf,
                      struct idem__aws_endpoint *endpoint)
{
    static const struct idem__aws_env env = {.get = no_variable};
    struct idem__aws_endpoint_options options = {.service = "dynamodb",
                                                 .service_env = "DYNAMODB"};
    int rc = idem__place_read(text, conf, NULL);

    must(rc == 0 || rc == IDEM_EINVALID);
    if (rc != 0) {
        return rc;
    }
    options.region = idem_str(conf->region);
    options.url = idem_str(conf->endpoint);
    options.insecure = conf->insecure;
    rc = idem__aws_endpoint_resolve(&options, &env, endpoint, NULL);
    must(rc == 0 || rc == IDEM_ECONFIG);
    return rc;
}

static void lead_to_table(const char *text)
{
    struct idem__aws_endpoint endpoint;
    struct idem__aws_endpoint again;
    struct idem__place_conf conf;
    struct idem__place_conf read;
    struct idem_error error;
    char url[IDEM_STORE_URL_MAX + 1];

    if (find_table(text, &conf, &endpoint) != 0) {
        return;
    }
    must(endpoint.tls || endpoint.local || conf.insecure);
    must(strpbrk(endpoint.host, " \t\r\n@?#") == NULL);
    must(strpbrk(endpoint.path, " \t\r\n?#") == NULL);
    if (idem__place_write(&conf, &endpoint, url, &error) != 0) {
        must(error.code == IDEM_EINVALID && error.text[0] != '\0');
        return;
    }
    must(strncmp(url, "dynamodb:", 9) == 0);
    must(find_table(url + 9, &read, &again) == 0);
    must(strcmp(conf.table.name, read.table.name) == 0);
    must(memcmp(&endpoint, &again, sizeof(endpoint)) == 0 ||
         (strcmp(endpoint.url, again.url) == 0 &&
          strcmp(endpoint.region, again.region) == 0 &&
          strcmp(endpoint.host, again.host) == 0 &&
          strcmp(endpoint.path, again.path) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);
    char *text;

    switch (take_up_to(&tape, 4)) {
    case 0:
        read_answer(&tape);
        break;
    case 1:
        read_date(take_rest(&tape));
        break;
    case 2:
        write_stamp(take_ms(&tape));
        break;
    case 3:
        text = text_of(take_rest(&tape));
        lead_to_table(text);
        free(text);
        break;
    default:
        learn_time(&tape);
        break;
    }
    return 0;
}
