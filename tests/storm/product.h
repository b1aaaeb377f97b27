/* What the work makes: bytes that follow from the id in their first line, so
 * that a replay which is not whole, or not of one piece, is found out. */
#ifndef STORM_PRODUCT_H
#define STORM_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRODUCT_ID 64 /* Bytes of an id with its NUL. */

/* An id that was never before. */
void product_id(uint64_t fence, char ret_id[PRODUCT_ID]);

/* "ID LEN\n" and bytes up to @len. Returns their number, or 0: it does not fit
 * into @cap. */
size_t product_make(const char *id, size_t len, char *buf, size_t cap);

/* True if @bytes are what product_make() makes; then *@ret_id is their id. */
bool product_check(const void *bytes, size_t len, char ret_id[PRODUCT_ID]);

#endif
