/* Big-endian numbers in byte strings. */
#ifndef IDEM_BASE_BYTES_H
#define IDEM_BASE_BYTES_H

#include <stdint.h>

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

#endif
