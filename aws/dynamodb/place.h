/* Which table, where, and how: the part after "dynamodb:" in a URL. */
#ifndef IDEM_AWS_DYNAMODB_PLACE_H
#define IDEM_AWS_DYNAMODB_PLACE_H

#include "aws/client/endpoint.h"
#include "aws/dynamodb/layout/layout.h"

enum {
    IDEM__PLACE_VALUE_MAX = 1023,
};

struct idem__place_conf {
    struct idem__table_conf table;
    char region[64];                          /* "": not said. */
    char writer[64];                          /* Likewise. */
    char endpoint[IDEM__PLACE_VALUE_MAX + 1]; /* Likewise. */
    bool host_clock;
    bool insecure;
};

/* 0, or IDEM_EINVALID with a sentence. */
int idem__place_read(const char *text, struct idem__place_conf *ret_conf,
                     struct idem_error *ret_error);

/* The URL that leads to the table of @conf from anywhere: with the region and the
 * endpoint that were found, and without what only says how to use it.
 * IDEM_EINVALID: it is too long. */
int idem__place_write(const struct idem__place_conf *conf,
                      const struct idem__aws_endpoint *endpoint,
                      char buf[IDEM_STORE_URL_MAX + 1],
                      struct idem_error *ret_error);

#endif
