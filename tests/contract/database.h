/* Schemas of a PostgreSQL server, for the contract: IDEM_TEST_POSTGRES is its URL. */
#ifndef CONTRACT_DATABASE_H
#define CONTRACT_DATABASE_H

#include "contract.h"

/* Makes a new, empty schema, and returns its name. */
const char *database_new(void);

/* As stored_read() and stored_write(). */
size_t database_read(const char *place, const char *key, enum part part,
                     uint8_t *buf, size_t cap);
void database_write(const char *place, const char *key, enum part part,
                    const uint8_t *bytes, size_t len);

#endif
