/* A rate limit in a table, and the requests about it, as JSON. Pure.
 *
 * A limit of up to IDEM__LIMIT_SMALL is one item for each window, with an attribute
 * for each request that it counted:
 *
 *     id   "limit#" and the window in hex
 *     lim  what was taken; by it each item of a limit is told from a record
 *     rNNN the entry of request NNN (16 bytes of its identity, in base64)
 *     refs refusals that are remembered, if there are any
 *     big  1 if a greater limit counted in this window, too
 *     ttl  in seconds
 *
 * One conditional update decides. Such an item grows to at most 11 KB; from about
 * 250 requests on an update of it costs more than the 4 write units of the other
 * kind.
 *
 * A greater limit has an item for each request (id "limit#" and the request in
 * hex, lim is its entry) and 4 or 16 shards for each window ("limit#" and the
 * window in hex, "#" and the shard's number; lim is what was taken from it, and
 * refs as above in the first). One transaction writes the request, if it is not
 * there, and takes its cost from a shard that keeps within its share of the limit
 * (limit_known.h), or from several. No item grows. The count of a shard only
 * ever grows, and nothing is moved between shards: so whatever was read of
 * them, at whatever time, is an upper bound of what is left now, and a request
 * that costs more than the sum of such bounds is refused for good.
 *
 * No item knows max: it is compared with what was taken, so that a limit whose max
 * is changed goes on with what was counted. Between small and greater limits it is
 * carried over so: the first transaction of a window sets big in the item that small
 * limits would have, and a small one admits nothing by one update where that is set.
 * It reads the shards, takes them off, and writes its requests as items, too; a
 * greater one takes off lim, and looks for requests in that item if any lie there.
 * So a window in which only one of the two counts, which is all but a few, costs no
 * request more. */
#ifndef IDEM_AWS_DYNAMODB_LIMIT_LIMIT_REQUEST_H
#define IDEM_AWS_DYNAMODB_LIMIT_LIMIT_REQUEST_H

#include "aws/dynamodb/layout/request.h"
#include "limit/limit.h"

enum {
    IDEM__LIMIT_SMALL = 256,
    IDEM__LIMIT_SHARDS_MAX = 16,
    IDEM__LIMIT_ID_MAX = 96, /* With a NUL. */
};

/* Into how many shards a limit is divided; 0: it is small. */
unsigned idem__limit_shards(const struct idem_limit_request *limit);

/* The id of a window's item, of a request's, and of a shard (0 or more). */
void idem__limit_item_id(const uint8_t id[IDEM_ID_LEN], int shard,
                         char ret_text[IDEM__LIMIT_ID_MAX]);

/* Small limits: admits the request if there is room and nothing is known of it;
 * remembers a refusal as it was decided on @found; reads. The id that is read is
 * the item's. */
void idem__limit_request_admit(struct idem__buffer *out,
                               const struct idem__table_conf *table,
                               const struct idem_op *op);
void idem__limit_request_refuse(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem_op *op,
                                const struct idem_limit_decision *decision);
void idem__limit_request_get(struct idem__buffer *out,
                             const struct idem__table_conf *table,
                             const uint8_t id[IDEM_ID_LEN]);

/* Small limits in a window with big: reads all that may be there of the window and of
 * the request, strongly; writes what was decided on that, the request as an item, if
 * what the small limit counted is still @own. */
void idem__limit_request_all(struct idem__buffer *out,
                             const struct idem__table_conf *table,
                             const struct idem_op *op);
void idem__limit_request_beside(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem_op *op,
                                const struct idem_limit_state *own,
                                const struct idem_limit_decision *decision);

/* Large limits: reads the first @shards shards and the item of small limits, not
 * strongly; writes the request with its entry and takes takes[i] from each shard
 * where that is more than 0 and stays within shares[i], or, with a refusal, counts
 * that in the first. With @marks it sets big, unless the item of small limits has an
 * entry of the request: the last part of the transaction. */
void idem__limit_request_shards(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem_op *op, unsigned shards);
void idem__limit_request_transact(struct idem__buffer *out,
                                  const struct idem__table_conf *table,
                                  const struct idem_op *op,
                                  const struct idem_limit_decision *decision,
                                  const uint64_t shares[IDEM__LIMIT_SHARDS_MAX],
                                  const uint64_t takes[IDEM__LIMIT_SHARDS_MAX],
                                  bool marks);

/* The contents of an item. 0 or IDEM_ECORRUPT. @item NULL: nothing. @ret_big: a
 * greater limit counted in this window. */
int idem__limit_read_window(json_object *item, const struct idem_op *op,
                            struct idem_limit_state *ret_state, bool *ret_big);
int idem__limit_read_entry(json_object *item,
                           struct idem_limit_state *ret_state);
int idem__limit_read_shard(json_object *item, uint64_t *ret_used,
                           uint64_t *ret_refusals);

/* True if @item is that of a window or a request with the identity @id. */
bool idem__limit_is_item(json_object *item, const uint8_t id[IDEM_ID_LEN]);

/* The shard that the id of @item names, or -1. */
int idem__limit_shard_of(json_object *item);

#endif
