/* Receiving an answer: the headers that matter, the body, and whether it is whole
 * and intact. */
#include "aws/client/slot.h"

#include "base/crc32.h"
#include "base/heap.h"

#include <strings.h>

#define GROW_MIN ((size_t)4096)
#define TRUST_MAX ((uint64_t)1 << 20)

void idem__aws_answer_reset(struct idem__aws_slot *slot)
{
    struct idem__aws_request *request = slot->request;

    memset(&slot->arrival, 0, sizeof(slot->arrival));
    request->answer_len = 0;
    request->error_type[0] = '\0';
    request->request_id[0] = '\0';
    request->has_crc32 = false;
}

/* Makes room for @len more bytes of body. */
static bool reserve(struct idem__aws_slot *slot, size_t len)
{
    struct idem__aws_request *request = slot->request;
    size_t max =
        request->answer_max == 0 ? IDEM__AWS_ANSWER_MAX : request->answer_max;
    size_t cap =
        request->answer_cap < GROW_MIN ? GROW_MIN : request->answer_cap;
    uint8_t *grown;

    if (len > max - request->answer_len) {
        slot->arrival.too_long = true;
        return false;
    }
    while (cap - request->answer_len < len) {
        cap *= 2;
    }
    if (cap == request->answer_cap) {
        return true;
    }
    grown = idem__realloc(request->answer, cap);
    if (grown == NULL) {
        slot->arrival.no_memory = true;
        return false;
    }
    request->answer = grown;
    request->answer_cap = cap;
    return true;
}

bool idem__aws_on_body(void *ctx, struct idem_slice bytes)
{
    struct idem__aws_slot *slot = ctx;
    struct idem__aws_request *request = slot->request;

    if (!reserve(slot, bytes.len)) {
        return false;
    }
    memcpy(request->answer + request->answer_len, bytes.base, bytes.len);
    request->answer_len += bytes.len;
    return true;
}

/* ---- Headers ----------------------------------------------------------- */

static void copy_text(char *buf, size_t cap, struct idem_slice value)
{
    size_t len = value.len < cap ? value.len : cap - 1;

    if (len > 0) {
        memcpy(buf, value.base, len);
    }
    buf[len] = '\0';
}

/* False: @value is not all digits, or too large. */
static bool read_number(struct idem_slice value, uint64_t max, uint64_t *ret)
{
    uint64_t number = 0;
    size_t i;

    for (i = 0; i < value.len; i++) {
        char c = ((const char *)value.base)[i];

        if (c < '0' || c > '9' || number > max / 10) {
            return false;
        }
        number = number * 10 + (uint64_t)(c - '0');
    }
    *ret = number;
    return value.len > 0 && number <= max;
}

static void on_date(struct idem__aws_slot *slot, struct idem_slice value)
{
    struct idem_clock_reading reading;
    int64_t date_ms;

    if (idem__aws_date_parse(value, &date_ms) &&
        slot->host->clock(slot->host->ctx, &reading) == 0 &&
        idem__aws_clock_learn(slot->clock, slot->sent_boot_ms, reading.boot_ms,
                              date_ms, reading.wall_ms)) {
        slot->arrival.date_ms = date_ms;
    }
}

/* A checksum that cannot be read is one that does not match. */
static void on_crc32(struct idem__aws_slot *slot, struct idem_slice value)
{
    uint64_t number = 0;

    slot->request->has_crc32 = true;
    slot->arrival.has_crc32 = read_number(value, UINT32_MAX, &number);
    slot->arrival.crc32 = (uint32_t)number;
}

static void on_length(struct idem__aws_slot *slot, struct idem_slice value)
{
    uint64_t number;

    slot->arrival.framed = true;
    if (read_number(value, TRUST_MAX, &number)) {
        (void)reserve(slot, (size_t)number);
    }
}

static void on_coding(struct idem__aws_slot *slot, struct idem_slice value)
{
    slot->arrival.encoded =
        value.len != 8 || strncasecmp(value.base, "identity", 8) != 0;
}

static void on_chunks(struct idem__aws_slot *slot, struct idem_slice value)
{
    slot->arrival.framed =
        value.len == 7 && strncasecmp(value.base, "chunked", 7) == 0;
}

static void on_error_type(struct idem__aws_slot *slot, struct idem_slice value)
{
    copy_text(slot->request->error_type, sizeof(slot->request->error_type),
              value);
}

static void on_request_id(struct idem__aws_slot *slot, struct idem_slice value)
{
    copy_text(slot->request->request_id, sizeof(slot->request->request_id),
              value);
}

static const struct {
    const char *name;
    size_t len;
    void (*take)(struct idem__aws_slot *slot, struct idem_slice value);
} headers[] = {
    {"date", 4, on_date},
    {"content-length", 14, on_length},
    {"x-amz-crc32", 11, on_crc32},
    {"x-amzn-requestid", 16, on_request_id},
    {"x-amzn-errortype", 16, on_error_type},
    {"content-encoding", 16, on_coding},
    {"transfer-encoding", 17, on_chunks},
};

static struct idem_slice trimmed(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t')) {
        p++;
    }
    while (end > p && strchr(" \t\r\n", end[-1]) != NULL) {
        end--;
    }
    return idem_bytes(p, (size_t)(end - p));
}

bool idem__aws_on_line(void *ctx, struct idem_slice line)
{
    struct idem__aws_slot *slot = ctx;
    const char *p = line.base;
    const char *colon = memchr(p, ':', line.len);
    size_t name_len = colon == NULL ? 0 : (size_t)(colon - p);
    size_t i;

    /* A new status line: what came before was a 1xx. */
    if (line.len > 5 && memcmp(p, "HTTP/", 5) == 0) {
        idem__aws_answer_reset(slot);
        return true;
    }
    for (i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        if (name_len == headers[i].len &&
            strncasecmp(p, headers[i].name, name_len) == 0) {
            headers[i].take(slot, trimmed(colon + 1, p + line.len));
            break;
        }
    }
    return !slot->arrival.no_memory;
}

const char *idem__aws_answer_flaw(const struct idem__aws_slot *slot)
{
    const struct idem__aws_request *request = slot->request;
    struct idem_slice body = {request->answer, request->answer_len};

    if (slot->arrival.encoded) {
        return "the answer is encoded in a way that was not requested";
    }
    if (request->has_crc32) {
        return slot->arrival.has_crc32 &&
                       idem__crc32(0, body) == slot->arrival.crc32
                   ? NULL
                   : "the answer does not match its checksum";
    }
    if (!slot->arrival.framed && request->status != 204 &&
        request->status != 304) {
        return "the answer does not say how long it is, and may be cut";
    }
    return NULL;
}
