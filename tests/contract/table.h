/* Tables of a DynamoDB server, for the contract: IDEM_TEST_DYNAMODB is its URL. */
#ifndef CONTRACT_TABLE_H
#define CONTRACT_TABLE_H

#include "contract.h"

/* Makes a new, empty table, and returns its name. */
const char *table_new(void);

/* As stored_read() and stored_write(). */
size_t table_part_read(const char *place, const char *key, enum part part,
                       uint8_t *buf, size_t cap);
void table_part_write(const char *place, const char *key, enum part part,
                      const uint8_t *bytes, size_t len);

#endif
