/* Operations by libcurl alone: the requests that there have to be, with bodies
 * that are put together from text, and answers that are looked through for what
 * was recorded. */
#include "dynamodb.h"
#include "raw.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BODY_MAX = 70000
};

static const char put_format[] =
    "{\"TableName\":\"%s\",\"Item\":{\"id\":{\"S\":\"%s\"},\"status\":{\"S\":"
    "\"INPROGRESS\"},\"owner\":{\"S\":\"0123456789abcdef\"},\"expiration\":{"
    "\"N\":\"1900000000\"}},\"ConditionExpression\":\"attribute_not_exists(id)"
    "\",\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}";
static const char update_format[] =
    "{\"TableName\":\"%s\",\"Key\":{\"id\":{\"S\":\"%s\"}},"
    "\"UpdateExpression\":\"SET #s = :s, #d = :d\",\"ConditionExpression\":"
    "\"#o = :o\",\"ExpressionAttributeNames\":{\"#s\":\"status\",\"#d\":"
    "\"data\",\"#o\":\"owner\"},\"ExpressionAttributeValues\":{\":s\":{\"S\":"
    "\"COMPLETED\"},\":o\":{\"S\":\"0123456789abcdef\"},\":d\":{\"S\":\"%s\"}}"
    "}";

struct step {
    char body[BODY_MAX];
    char name[NAME_MAX_LEN];
    bool claimed;
};

static struct raw *raw;
static struct step *steps;
static char table[256];
static char data[BODY_MAX - 1000]; /* The result as text inside JSON. */

static void open_raw(const char *where, const char *result)
{
    const char *slash = strrchr(where, '/');
    char url[256];
    size_t len = 0;
    unsigned i;

    (void)snprintf(url, sizeof(url), "%.*s", (int)(slash - where), where);
    (void)snprintf(table, sizeof(table), "%s", slash + 1);
    for (; *result != '\0' && len < sizeof(data) - 2; result++) {
        if (*result == '"' || *result == '\\') {
            data[len++] = '\\';
        }
        data[len++] = *result;
    }
    raw = raw_open(url, IN_FLIGHT_MAX);
    steps = calloc(IN_FLIGHT_MAX, sizeof(*steps));
    if (steps == NULL) {
        err(1, "steps");
    }
    for (i = 0; i < IN_FLIGHT_MAX; i++) {
        raw_call(raw, i)->user = &steps[i];
    }
}

static void close_raw(void)
{
    raw_close(raw);
    free(steps);
}

static void claim(struct raw_call *call, uint64_t n)
{
    struct step *step = call->user;

    name_of(n, step->name);
    (void)snprintf(step->body, sizeof(step->body), put_format, table,
                   step->name);
    step->claimed = false;
    raw_send(call, "PutItem", step->body);
}

static void complete(struct raw_call *call)
{
    struct step *step = call->user;

    (void)snprintf(step->body, sizeof(step->body), update_format, table,
                   step->name, data);
    step->claimed = true;
    raw_send(call, "UpdateItem", step->body);
}

static bool is_done(const struct raw_call *call, bool fresh)
{
    const struct step *step = call->user;

    if (call->status == 200 && fresh) {
        return step->claimed;
    }
    if (fresh || call->status != 400 ||
        memmem(call->answer, call->len, data, strlen(data)) == NULL) {
        errx(1, "raw: status %d: %.*s", call->status, (int)call->len,
             call->answer);
    }
    return true;
}

static void run_raw(const struct work *work)
{
    uint64_t begun = 0;
    uint64_t done = 0;

    while (begun < work->ops && begun < work->in_flight) {
        claim(raw_call(raw, (unsigned)begun), work->from + begun % work->keys);
        begun++;
    }
    while (done < work->ops) {
        struct raw_call *call = raw_reap(raw);

        if (!is_done(call, work->fresh)) {
            complete(call);
            continue;
        }
        done++;
        if (begun < work->ops) {
            claim(call, work->from + begun % work->keys);
            begun++;
        }
    }
}

const struct client client_raw = {
    .name = "raw",
    .open = open_raw,
    .run = run_raw,
    .close = close_raw,
};
