/* Receives an answer: the headers that matter, the body, and whether it is whole and
 * intact.
 *
 * libcurl reads HTTP leniently. We stop reading an answer if a mistake in it could hide a
 * cut, or the start of another answer: a status line that is not HTTP/1's, a length that
 * is not a number, two different lengths, a coding other than "chunked", folded lines. */
#include "aws/client/client.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/heap.h"

#include <strings.h>

#define HEAD_MAX ((size_t)64 << 10)
#define GROW_MIN ((size_t)4096)
/* A Content-Length up to this is trusted for memory before any byte of the body came. */
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
        slot->arrival.flaw = "the answer is too long";
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

size_t idem__aws_on_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct idem__aws_slot *slot = ctx;
    struct idem__aws_request *request = slot->request;
    size_t len = size * n;

    if (!reserve(slot, len)) {
        return 0; /* Another number than libcurl gave us ends the transfer. */
    }
    memcpy(request->answer + request->answer_len, bytes, len);
    request->answer_len += len;
    return len;
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

static void on_date(struct idem__aws_slot *slot, struct idem_slice value)
{
    const struct idem_host *host = &slot->options->host;
    struct idem_clock_reading reading;
    int64_t date_ms;

    if (idem__aws_date_parse(value, &date_ms) &&
        host->clock(host->ctx, &reading) == 0 &&
        idem__aws_clock_learn(slot->clock, slot->sent_boot_ms, reading.boot_ms,
                              date_ms, reading.wall_ms)) {
        slot->arrival.date_ms = date_ms;
    }
}

/* A checksum that we cannot read counts as one that does not match. */
static void on_crc32(struct idem__aws_slot *slot, struct idem_slice value)
{
    uint64_t number = 0;

    slot->request->has_crc32 = true;
    slot->arrival.has_crc32 = idem__digits(value, UINT32_MAX, &number);
    slot->arrival.crc32 = (uint32_t)number;
}

static void on_length(struct idem__aws_slot *slot, struct idem_slice value)
{
    struct idem__aws_arrival *arrival = &slot->arrival;
    uint64_t number;

    if (!idem__digits(value, INT64_MAX, &number) ||
        (arrival->has_length && arrival->length != number)) {
        arrival->flaw = "the answer's length is not valid";
        return;
    }
    arrival->has_length = true;
    arrival->length = number;
    if (number <= TRUST_MAX) {
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
    slot->arrival.chunked = true;
    if (value.len != 7 || strncasecmp(value.base, "chunked", 7) != 0) {
        slot->arrival.flaw = "the answer has unknown framing";
    }
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

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HTTP/1.1 200 OK". */
static void on_status(struct idem__aws_slot *slot, const char *p, size_t len)
{
    size_t head_len = slot->arrival.head_len;

    /* Forget the header fields of an interim response: they are not the answer's. */
    idem__aws_answer_reset(slot);
    slot->arrival.head_len = head_len;
    if (len < 12 || memcmp(p, "HTTP/1.", 7) != 0 || !is_digit(p[7]) ||
        p[7] > '1' || p[8] != ' ' || !is_digit(p[9]) || p[9] == '0' ||
        !is_digit(p[10]) || !is_digit(p[11]) ||
        (len > 12 && strchr(" \r\n", p[12]) == NULL) ||
        memcmp(p + 9, "101", 3) == 0) {
        slot->arrival.flaw = "the answer is not HTTP/1.1";
        return;
    }
    slot->arrival.final = p[9] != '1';
}

static void on_field(struct idem__aws_slot *slot, const char *p, size_t len)
{
    const char *colon = memchr(p, ':', len);
    size_t name_len = colon == NULL ? 0 : (size_t)(colon - p);
    size_t i;

    if (name_len == 0 || *p == ' ' || *p == '\t') {
        slot->arrival.flaw = "the answer is not HTTP/1.1";
        return;
    }
    for (i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        if (name_len == headers[i].len &&
            strncasecmp(p, headers[i].name, name_len) == 0) {
            headers[i].take(slot, trimmed(colon + 1, p + len));
            break;
        }
    }
}

static void on_head_end(struct idem__aws_slot *slot)
{
    struct idem__aws_arrival *arrival = &slot->arrival;

    arrival->head_over = true;
    /* The answer has two framings, and its sender may have meant the one that libcurl does
     * not use: then the next answer would begin in the wrong place. */
    if (arrival->has_length && arrival->chunked) {
        (void)curl_easy_setopt(slot->easy, CURLOPT_FORBID_REUSE, 1L);
    }
}

/* libcurl calls this for each line of a head, for the empty one that ends it, and for each
 * line of a trailer. */
size_t idem__aws_on_header(char *line, size_t size, size_t n, void *ctx)
{
    struct idem__aws_slot *slot = ctx;
    struct idem__aws_arrival *arrival = &slot->arrival;
    size_t len = size * n;

    arrival->head_len += len;
    if (arrival->head_len > HEAD_MAX) {
        arrival->flaw = "the head of the answer is too long";
    } else if (arrival->head_over && arrival->final) {
        /* Ignore a trailer: we believe nothing in it. */
    } else if (arrival->head_len == len || arrival->head_over) {
        on_status(slot, line, len);
    } else if (trimmed(line, line + len).len == 0) {
        on_head_end(slot);
    } else {
        on_field(slot, line, len);
    }
    return arrival->flaw != NULL || arrival->no_memory ? 0 : len;
}

const char *idem__aws_answer_flaw(const struct idem__aws_slot *slot)
{
    const struct idem__aws_request *request = slot->request;
    struct idem_slice body = {request->answer, request->answer_len};

    if (slot->arrival.encoded) {
        return "the answer has an encoding that was not requested";
    }
    if (request->has_crc32) {
        return slot->arrival.has_crc32 &&
                       idem__crc32(0, body) == slot->arrival.crc32
                   ? NULL
                   : "the answer does not match its checksum";
    }
    if (!slot->arrival.has_length && !slot->arrival.chunked &&
        request->status != 204 && request->status != 304) {
        return "the answer has no length and may be truncated";
    }
    return NULL;
}
