/* Checks the description of a table for its use as a store. Pure. */
#ifndef IDEM_STORE_DYNAMODB_JUDGE_H
#define IDEM_STORE_DYNAMODB_JUDGE_H

#include "core/finding.h"
#include "store/dynamodb/place.h"

struct idem__judge {
    struct idem__findings to;
    const struct idem__place_conf *place;
    const char *region;
    char create[IDEM_STORE_URL_MAX + 64]; /* "idem store create ..." */
    char purge[IDEM_STORE_URL_MAX + 64];  /* "idem purge ..." */
    char aws[1200]; /* " --table-name ...", after "aws dynamodb VERB". */
};

/* @place_text is the part after "dynamodb:" in the URL. */
void idem__judge_init(struct idem__judge *judge,
                      const struct idem__findings *to, const char *place_text,
                      const struct idem__place_conf *place,
                      const struct idem__aws_endpoint *endpoint);

/* The Table of DescribeTable. */
void idem__judge_table(const struct idem__judge *judge, json_object *table);

/* The TimeToLiveDescription of DescribeTimeToLive; NULL: there is none. */
void idem__judge_ttl(const struct idem__judge *judge, json_object *ttl);

/* The ContinuousBackupsDescription of DescribeContinuousBackups, likewise. */
void idem__judge_backups(const struct idem__judge *judge, json_object *backups);

/* This machine's clock is ahead of the service's by @off_ms, give or take
 * @err_ms. */
void idem__judge_clock(const struct idem__judge *judge, int64_t off_ms,
                       int64_t err_ms);

#endif
