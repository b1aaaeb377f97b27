/* A growing run of bytes. Once memory runs out it only remembers that it did. */
#ifndef IDEM_BASE_BUFFER_H
#define IDEM_BASE_BUFFER_H

#include <idem.h>

struct idem__buffer {
    uint8_t *base;
    size_t len;
    size_t cap;
    bool failed;
};

/* Makes room for @more bytes and returns where they go, or NULL. The caller adds
 * to len what it has used. */
uint8_t *idem__buffer_room(struct idem__buffer *buffer, size_t more);

void idem__buffer_add(struct idem__buffer *buffer, const void *bytes,
                      size_t len);
void idem__buffer_str(struct idem__buffer *buffer, const char *text);
void idem__buffer_u64(struct idem__buffer *buffer, uint64_t number);

/* The padded base64 of @bytes. */
void idem__buffer_base64(struct idem__buffer *buffer, struct idem_slice bytes);

/* Empties it; its memory stays for the next use unless it is more than @keep. */
void idem__buffer_reset(struct idem__buffer *buffer, size_t keep);

void idem__buffer_free(struct idem__buffer *buffer);

static inline struct idem_slice idem__buffer_slice(
    const struct idem__buffer *buffer)
{
    return idem_bytes(buffer->base, buffer->len);
}

#endif
