/* A record as an item of the table, and back. Pure.
 *
 *     id         S  64 hex digits: the identity; the key of the table
 *     rec        B  the head of the record, as idem__record_encode() writes it
 *     status     S  the record's, for people and for stream filters
 *     key, scope S  in clear (B where they are no UTF-8); no scope: empty
 *     result     B  its bytes, if they are few; result_z: packed;
 *     result_in  S  "TAG:N" or "TAG:N:z": they are in N items of their own
 *     input, input_z, input_in   likewise
 *     input_ttl  N  the input is in parts, which stay until then, in seconds, at
 *                   least; none: for as long as nobody deletes them
 *     open       S  one of 16 shards, while the record is not at its end: the key
 *     since      N  of the index "open"; and when its life began, in ms
 *     ttl        N  when DynamoDB may delete it, in seconds; none: never
 *
 * An item of its own for a part of a body: id is "ID#r#TAG#I" or "ID#i#TAG#I",
 * body B, made N (ms), ttl N. lifetime.c says how long it stays.
 *
 * Every write is conditional on the very bytes of rec that it was decided on, or
 * on there being no item. They hold the nonce, the fence and the times, so that
 * no two states of a record are ever alike, and a checksum; what that does not
 * cover is checked against what it covers.
 */
#ifndef IDEM_AWS_DYNAMODB_LAYOUT_ITEM_H
#define IDEM_AWS_DYNAMODB_LAYOUT_ITEM_H

#include "aws/dynamodb/layout/json.h"
#include "contract/store.h"

enum {
    IDEM__ITEM_ID_LEN = 2 * IDEM_ID_LEN,
    IDEM__TAG_LEN = 16,
    /* One write unit. */
    IDEM__UNIT = 1024,
    /* Bytes of a body in one item: the limit is 400 KB, names included. */
    IDEM__PART_LEN = 384 * 1024,
    IDEM__PARTS_MAX = (IDEM_RESULT_MAX + IDEM__PART_LEN - 1) / IDEM__PART_LEN,
    IDEM__PART_NAME_MAX = IDEM__ITEM_ID_LEN + 3 + 2 * IDEM__TAG_LEN + 12,
};

/* A deleted item's fence is forgotten: an item outlives what it says by longer
 * than any request can be under way and any clock that the service accepts can
 * be wrong. */
#define IDEM__TTL_GUARD_MS ((int64_t)2 * 3600 * 1000)
/* And the parts of a body outlive their head. */
#define IDEM__TTL_PART_MS ((int64_t)24 * 3600 * 1000)

enum idem__place {
    IDEM__PLACE_NONE = 0, /* No bytes. */
    IDEM__PLACE_INLINE,
    IDEM__PLACE_APART,
};

/* Where the bytes of a result or an input are. */
struct idem__body {
    enum idem__place place;
    bool packed;
    struct idem_slice stored;   /* INLINE: as stored, packed or not. */
    uint8_t tag[IDEM__TAG_LEN]; /* APART. */
    uint32_t parts;
    int64_t ttl_ms; /* Its parts stay until then at least; IDEM_NEVER. */
};

struct idem__item {
    struct idem_record record; /* Its bodies' bytes are not set. */
    struct idem_slice head;    /* As it was read: the bytes of rec. */
    struct idem__body result;
    struct idem__body input;
    bool has_writes; /* It was completed together with a caller's own ... */
    uint8_t writes[IDEM__TAG_LEN]; /* ... of which this is the digest. */
};

/* The item's id: hex digits and a NUL. */
void idem__item_id(const uint8_t id[IDEM_ID_LEN],
                   char ret_text[IDEM__ITEM_ID_LEN + 1]);

/* False: @text is none. */
bool idem__item_id_read(struct idem_slice text, uint8_t ret_id[IDEM_ID_LEN]);

/* The id of part @i of a body; @kind is 'r' or 'i'. */
void idem__part_name(const uint8_t id[IDEM_ID_LEN], char kind,
                     const uint8_t tag[IDEM__TAG_LEN], uint32_t i,
                     char ret_name[IDEM__PART_NAME_MAX]);

/* False: @name is not the id of a part. *@ret_kind is 'r' or 'i'. */
bool idem__part_name_read(struct idem_slice name, uint8_t ret_id[IDEM_ID_LEN],
                          char *ret_kind, uint8_t ret_tag[IDEM__TAG_LEN]);

/* The item's size as DynamoDB counts it, without its bodies. @head_len is the
 * length of its head. */
size_t idem__item_size(const struct idem__item *item, size_t head_len);

/* Appends {"id":...}. @head is item->record encoded. */
void idem__item_write(struct idem__buffer *out, const struct idem__item *item,
                      struct idem_slice head, bool index);

/* When DynamoDB may delete the item, in ms; IDEM_NEVER. */
int64_t idem__item_ttl_ms(const struct idem_record *record);

/* Reads an item that must be of @id (NULL: of the id that it names). Everything
 * that it says is checked against the record's checksum. The record's slices and
 * the bodies' point into @memory, which is emptied first.
 *
 * IDEM_ECORRUPT  It is none, or cannot be trusted. @ret_item has scope, key and
 *                id where they could be read.
 * IDEM_ENOMEM
 */
int idem__item_read(json_object *object, const uint8_t *id,
                    struct idem__buffer *memory, struct idem__item *ret_item,
                    struct idem_error *ret_error);

#endif
