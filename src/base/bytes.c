/* Buffers that grow. */
#include "base/bytes.h"

#include "base/base64.h"
#include "base/heap.h"

enum {
    FIRST_CAP = 512
};

uint8_t *idem__buffer_room(struct idem__buffer *buffer, size_t more)
{
    size_t cap = buffer->cap < FIRST_CAP ? FIRST_CAP : buffer->cap;
    uint8_t *grown;

    if (buffer->failed || more > SIZE_MAX / 4 - buffer->len) {
        buffer->failed = true;
        return NULL;
    }
    if (buffer->cap - buffer->len >= more && buffer->base != NULL) {
        return buffer->base + buffer->len;
    }
    while (cap - buffer->len < more) {
        cap *= 2;
    }
    grown = idem__realloc(buffer->base, cap);
    if (grown == NULL) {
        buffer->failed = true;
        return NULL;
    }
    buffer->base = grown;
    buffer->cap = cap;
    return buffer->base + buffer->len;
}

void idem__buffer_add(struct idem__buffer *buffer, const void *bytes,
                      size_t len)
{
    uint8_t *to = idem__buffer_room(buffer, len);

    if (to != NULL && len > 0) {
        memcpy(to, bytes, len);
        buffer->len += len;
    }
}

void idem__buffer_str(struct idem__buffer *buffer, const char *text)
{
    idem__buffer_add(buffer, text, strlen(text));
}

void idem__buffer_u64(struct idem__buffer *buffer, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    idem__buffer_add(buffer, digits + at, sizeof(digits) - at);
}

void idem__buffer_base64(struct idem__buffer *buffer, struct idem_slice bytes)
{
    size_t len = idem__base64_len(IDEM__BASE64, bytes.len);
    uint8_t *to = idem__buffer_room(buffer, len);

    if (to != NULL) {
        idem__base64_write(IDEM__BASE64, bytes, (char *)to);
        buffer->len += len;
    }
}

void idem__buffer_reset(struct idem__buffer *buffer, size_t keep)
{
    if (buffer->cap > keep) {
        idem__buffer_free(buffer);
    }
    buffer->len = 0;
    buffer->failed = false;
}

void idem__buffer_free(struct idem__buffer *buffer)
{
    idem__free(buffer->base);
    memset(buffer, 0, sizeof(*buffer));
}
