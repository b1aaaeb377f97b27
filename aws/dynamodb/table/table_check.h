/* Checks the description of a table for its use as a store. Pure. */
#ifndef IDEM_AWS_DYNAMODB_TABLE_TABLE_CHECK_H
#define IDEM_AWS_DYNAMODB_TABLE_TABLE_CHECK_H

#include "aws/dynamodb/place.h"
#include "core/finding.h"

struct idem__table_check {
    struct idem__findings to;
    const struct idem__place_conf *place;
    const char *region;
    char create[IDEM_STORE_URL_MAX + 64]; /* "idem store create ..." */
    char purge[IDEM_STORE_URL_MAX + 64];  /* "idem purge ..." */
    char aws[1200]; /* " --table-name ...", after "aws dynamodb VERB". */
};

/* @place_text is the part after "dynamodb:" in the URL. */
void idem__table_check_init(struct idem__table_check *check,
                            const struct idem__findings *to,
                            const char *place_text,
                            const struct idem__place_conf *place,
                            const struct idem__aws_endpoint *endpoint);

/* The Table of DescribeTable. */
void idem__table_check_table(const struct idem__table_check *check,
                             json_object *table);

/* The TimeToLiveDescription of DescribeTimeToLive; NULL: there is none. */
void idem__table_check_ttl(const struct idem__table_check *check,
                           json_object *ttl);

/* The ContinuousBackupsDescription of DescribeContinuousBackups, likewise. */
void idem__table_check_backups(const struct idem__table_check *check,
                               json_object *backups);

/* This machine's clock is ahead of the service's by @off_ms, give or take
 * @err_ms. */
void idem__table_check_clock(const struct idem__table_check *check,
                             int64_t off_ms, int64_t err_ms);

#endif
