/* The part after "dynamodb:" in a URL: the table, where it is, and how to use it. */
#ifndef IDEM_AWS_DYNAMODB_PLACE_H
#define IDEM_AWS_DYNAMODB_PLACE_H

#include "aws/client/endpoint.h"
#include "aws/dynamodb/layout/layout.h"

enum {
    IDEM__PLACE_VALUE_MAX = 1023,
};

/* "": the URL does not have the option. */
struct idem__place_conf {
    struct idem__table_conf table;
    char region[64];
    char writer[64];
    char endpoint[IDEM__PLACE_VALUE_MAX + 1];
    bool host_clock;
    bool insecure;
    int64_t cache_ms; /* Of completed records in memory; 0: none. */
};

/* Returns 0 or IDEM_EINVALID. */
int idem__place_read(const char *text, struct idem__place_conf *ret_conf,
                     struct idem_error *ret_error);

/* Writes a URL that opens the table of @conf in any process: with the region and the
 * endpoint that were found. Of the other options it keeps layout, clock and insecure.
 * IDEM_EINVALID: it is too long. */
int idem__place_write(const struct idem__place_conf *conf,
                      const struct idem__aws_endpoint *endpoint,
                      char buf[IDEM_STORE_URL_MAX + 1],
                      struct idem_error *ret_error);

#endif
