/* The requests that are made of DynamoDB, as JSON. Pure. */
#ifndef IDEM_AWS_DYNAMODB_LAYOUT_REQUEST_JSON_H
#define IDEM_AWS_DYNAMODB_LAYOUT_REQUEST_JSON_H

#include "aws/dynamodb/layout/layout.h"

#define IDEM__TARGET(name) "DynamoDB_20120810." name

/* Parts of one body, of which those marked in @done are left out. */
struct idem__parts {
    const uint8_t *id;
    char kind; /* 'r' or 'i'. */
    const struct idem__body *body;
    struct idem_slice stored; /* All its bytes; writing only. */
    const bool *done;         /* body->parts of them. */
    int64_t made_ms;          /* When it is written. */
};

enum {
    /* Parts in one request. */
    IDEM__PARTS_PUT = 8,
    IDEM__PARTS_GET = 16,
    IDEM__PARTS_DELETE = 25,
    IDEM__HEADS_GET = 100,
};

/* Writes @item over the one whose head is @old, or where there is none (NULL);
 * asks for the item that is in the way. */
void idem__request_put(struct idem__buffer *out,
                       const struct idem__table_conf *table,
                       const struct idem__item *item, struct idem_slice head,
                       const struct idem_slice *old);

/* The same write, and the @writes of a caller, all or nothing. A request that
 * is sent twice in the same words within ten minutes is done once. */
void idem__request_transact(struct idem__buffer *out,
                            const struct idem__table_conf *table,
                            const struct idem__item *item,
                            struct idem_slice head,
                            const struct idem_slice *old,
                            struct idem_slice writes);

/* Reads one item, strongly. @key is its key in the clear, which another layout
 * wants. */
void idem__request_get(struct idem__buffer *out,
                       const struct idem__table_conf *table,
                       const uint8_t id[IDEM_ID_LEN], struct idem_slice key);

/* Writes, or reads, the next parts; at most IDEM__PARTS_PUT or _GET of them. */
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

/* A page of the table after the item @after (empty: from the start), without the
 * parts of bodies and what is counted for limits. Returns its target: Scan, or
 * Query where the records are one partition of the table. */
const char *idem__request_scan(struct idem__buffer *out,
                               const struct idem__table_conf *table,
                               struct idem_slice after, uint64_t limit);

/* A page that is read to delete from it, which is conditional on what was read: so
 * it is not read strongly, at half the price. */
struct idem__sweep {
    struct idem_slice after; /* As above. */
    uint64_t limit;
    uint64_t segment; /* Of so many, from 0 on; 0 of 0: the whole table. */
    uint64_t segments;
};

/* Such a page with the parts of bodies, but without their bytes. Returns its target.
 * It, and the requests that delete, ask what they cost. */
const char *idem__request_sweep(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem__sweep *sweep);

/* A page of shard @shard of the index, after (@after, @since). */
void idem__request_query(struct idem__buffer *out,
                         const struct idem__table_conf *table, unsigned shard,
                         struct idem_slice after, uint64_t since,
                         uint64_t limit);

/* Deletes the item if its head is @old; @key as above. */
void idem__request_delete(struct idem__buffer *out,
                          const struct idem__table_conf *table,
                          const uint8_t id[IDEM_ID_LEN], struct idem_slice key,
                          struct idem_slice old);

/* Deletes the part @name if it was written at @made_ms, and not again since. */
void idem__request_part_delete(struct idem__buffer *out,
                               const struct idem__table_conf *table,
                               struct idem_slice name, uint64_t made_ms);

/* Deletes the next parts that are not done; at most IDEM__PARTS_DELETE. */
void idem__request_parts_delete(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem__parts *parts);

#endif
