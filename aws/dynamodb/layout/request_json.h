/* Requests to DynamoDB as JSON. Pure. */
#ifndef IDEM_AWS_DYNAMODB_LAYOUT_REQUEST_JSON_H
#define IDEM_AWS_DYNAMODB_LAYOUT_REQUEST_JSON_H

#include "aws/dynamodb/layout/layout.h"

#define IDEM__TARGET(name) "DynamoDB_20120810." name

/* The parts of one body that are not marked in @done. */
struct idem__parts {
    const uint8_t *id;
    char kind; /* 'r' or 'i'. */
    const struct idem__body *body;
    struct idem_slice stored; /* All bytes of the body; only to write it. */
    const bool *done;         /* body->parts of them. */
    int64_t made_ms;          /* The time of writing. */
};

enum {
    /* The most that one request carries. */
    IDEM__PARTS_PUT = 8,
    IDEM__PARTS_GET = 16,
    IDEM__PARTS_DELETE = 25,
    IDEM__HEADS_GET = 100,
};

/* Writes @item over the one whose head is @old (NULL: only if there is none). A refusal
 * shows the item that is in the way. */
void idem__request_put(struct idem__buffer *out,
                       const struct idem__table_conf *table,
                       const struct idem__item *item, struct idem_slice head,
                       const struct idem_slice *old);

/* The same write together with the @writes of a caller, all or nothing. The service does
 * the same request only once in ten minutes: the digest of its text is its token. */
void idem__request_transact(struct idem__buffer *out,
                            const struct idem__table_conf *table,
                            const struct idem__item *item,
                            struct idem_slice head,
                            const struct idem_slice *old,
                            struct idem_slice writes);

/* Reads one item, strongly. Another library's layout needs its @key in clear. */
void idem__request_get(struct idem__buffer *out,
                       const struct idem__table_conf *table,
                       const uint8_t id[IDEM_ID_LEN], struct idem_slice key);

/* Writes, or reads, the next parts: at most IDEM__PARTS_PUT or IDEM__PARTS_GET. */
void idem__request_parts_put(struct idem__buffer *out,
                             const struct idem__table_conf *table,
                             const struct idem__parts *parts);
void idem__request_parts_get(struct idem__buffer *out,
                             const struct idem__table_conf *table,
                             const struct idem__parts *parts);

/* Reads the items of @ids, at most IDEM__HEADS_GET, strongly. */
void idem__request_heads_get(struct idem__buffer *out,
                             const struct idem__table_conf *table,
                             const uint8_t (*ids)[IDEM_ID_LEN], size_t ids_len);

/* Reads a page of the table after the item @after (empty: from the start), without parts of
 * bodies and items of limits. Returns the target: Scan, or Query if the records are one
 * partition of the table. */
const char *idem__request_scan(struct idem__buffer *out,
                               const struct idem__table_conf *table,
                               struct idem_slice after, uint64_t limit);

/* Reads a page of a purge: with the parts of bodies, but without their bytes. Each deletion
 * is conditional on what was read, so the page is not read strongly, which costs half. This
 * request and those that delete ask the service which capacity they took. */
const char *idem__request_sweep(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                struct idem_slice after, uint64_t limit);

/* Reads a page of the shard @shard of the index after the item (@after, @since). */
void idem__request_query(struct idem__buffer *out,
                         const struct idem__table_conf *table, unsigned shard,
                         struct idem_slice after, uint64_t since,
                         uint64_t limit);

/* Deletes the item if its head is @old; @key as above. */
void idem__request_delete(struct idem__buffer *out,
                          const struct idem__table_conf *table,
                          const uint8_t id[IDEM_ID_LEN], struct idem_slice key,
                          struct idem_slice old);

/* Deletes the part @name if nobody has written it again since @made_ms. */
void idem__request_part_delete(struct idem__buffer *out,
                               const struct idem__table_conf *table,
                               struct idem_slice name, uint64_t made_ms);

/* Deletes the next parts that are not done; at most IDEM__PARTS_DELETE. */
void idem__request_parts_delete(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem__parts *parts);

#endif
