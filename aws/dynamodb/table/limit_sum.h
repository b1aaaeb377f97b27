/* Adding up the requests of approximate limits from a table's stream. Pure. */
#ifndef IDEM_AWS_DYNAMODB_TABLE_LIMIT_SUM_H
#define IDEM_AWS_DYNAMODB_TABLE_LIMIT_SUM_H

#include "aws/dynamodb/layout/request.h"

/* The sum of one window in a batch of a stream. */
struct idem__limit_sum {
    char window[IDEM__ITEM_ID_LEN + 1];
    uint64_t ttl_s;
    uint64_t cost;
    uint64_t requests;
    uint8_t batch[IDEM_ID_LEN]; /* Of its records, whatever else came along. */
};

struct idem__limit_sums {
    struct idem__limit_sum *sums;
    size_t len;
    size_t cap;
};

/* Adds up what @event, an event of a stream as Lambda gives it, says of requests
 * that were added. Items that are not ours are passed over.
 *
 * IDEM_EINVALID  It is not such an event.
 * IDEM_ENOMEM
 */
int idem__limit_sums_read(struct idem__limit_sums *sums, json_object *event);
void idem__limit_sums_finish(struct idem__limit_sums *sums);

/* Adds @sum to what was taken from its window, unless this very batch was added to
 * it already. The window remembers the last batches that it saw, in 16 places
 * by their identity. */
void idem__limit_request_sum(struct idem__buffer *out,
                             const struct idem__table_conf *table,
                             const struct idem__limit_sum *sum);

#endif
