/* bytes.h: big-endian numbers, buffers that grow, UTF-8, decimal numbers and spans of
 * time. */
#ifndef IDEM_BASE_BYTES_H
#define IDEM_BASE_BYTES_H

#include <idem.h>
#include <string.h>

/* ---- Big-endian numbers -------------------------------------------------- */

static inline void idem__put_u32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static inline void idem__put_u64(uint8_t *p, uint64_t v)
{
    idem__put_u32(p, (uint32_t)(v >> 32));
    idem__put_u32(p + 4, (uint32_t)v);
}

static inline uint32_t idem__get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           (uint32_t)p[3];
}

static inline uint64_t idem__get_u64(const uint8_t *p)
{
    return (uint64_t)idem__get_u32(p) << 32 | idem__get_u32(p + 4);
}

/* ---- A buffer that grows ------------------------------------------------- */

/* A buffer that grows. After memory has run out, failed is set and nothing more is
 * added, so the caller checks once at the end. */
struct idem__buffer {
    uint8_t *base;
    size_t len;
    size_t cap;
    bool failed;
};

/* Makes room for @more bytes and returns where they go, or NULL. The caller adds to len
 * how many it wrote. */
uint8_t *idem__buffer_room(struct idem__buffer *buffer, size_t more);

/* Inline, because most texts that are added are short and known when this is
 * compiled. */
static inline void idem__buffer_add(struct idem__buffer *buffer,
                                    const void *bytes, size_t len)
{
    uint8_t *to = idem__buffer_room(buffer, len);

    if (to != NULL && len > 0) {
        memcpy(to, bytes, len);
        buffer->len += len;
    }
}

static inline void idem__buffer_str(struct idem__buffer *buffer,
                                    const char *text)
{
    idem__buffer_add(buffer, text, strlen(text));
}

/* Adds @number in decimal digits. */
void idem__buffer_u64(struct idem__buffer *buffer, uint64_t number);

/* Adds the padded base64 of @bytes. */
void idem__buffer_base64(struct idem__buffer *buffer, struct idem_slice bytes);

/* Empties the buffer, and frees its memory if that is more than @keep bytes. */
void idem__buffer_reset(struct idem__buffer *buffer, size_t keep);

void idem__buffer_free(struct idem__buffer *buffer);

static inline struct idem_slice idem__buffer_slice(
    const struct idem__buffer *buffer)
{
    return idem_bytes(buffer->base, buffer->len);
}

/* ---- UTF-8 as RFC 3629 defines it ---------------------------------------- */

/* Returns how many of the @left bytes at @p the character there takes, if it is above
 * 0x7f; 0 if it is not well-formed. */
size_t idem__utf8_len(const uint8_t *p, size_t left);

/* True if @bytes is well-formed UTF-8. */
bool idem__utf8_is(struct idem_slice bytes);

/* Returns the length of the run at the start of the @len bytes at @p that a JSON string
 * holds unescaped: printable ASCII but the quotation mark and the backslash. */
size_t idem__json_plain_len(const uint8_t *p, size_t len);

/* ---- Decimal numbers ----------------------------------------------------- */

/* Reads the decimal number @text. Returns false if it is empty, has a character that is
 * not a digit, or is above @max. */
bool idem__digits(struct idem_slice text, uint64_t max, uint64_t *ret_number);

/* ---- Spans of time ------------------------------------------------------- */

#define IDEM__SPAN_MAX 32

/* Writes "420 ms", "2.2 s", "43 s", "12 minutes", "3 hours", "12 days", "56 years" to
 * @buf, rounded down; a negative @ms counts as 0. */
void idem__span(int64_t ms, char buf[IDEM__SPAN_MAX]);

#endif
