/* Writes a record as an item of the table, and reads it back. Pure.
 *
 *     id         S  64 hex digits: the identity; the key of the table
 *     rec        B  the head of the record, as idem__record_encode() writes it
 *     status     S  of the record, for people and for stream filters
 *     key, scope S  in clear (B unless they are UTF-8); missing if the scope is empty
 *     result     B  the bytes, if they are few; result_z: packed;
 *     result_in  S  "TAG:N" or "TAG:N:z" (packed): the bytes are in N other items
 *     input, input_z, input_in   the same for the input
 *     input_ttl  N  the parts of the input stay at least until then, in seconds;
 *                   missing: until somebody deletes them
 *     writes     B  the digest of a caller's writes that were committed with the record
 *     open       S  one of 16 shards, while the record is in progress, failed or unknown,
 *                   or completed with a failure; with since the key of the index "open"
 *     since      N  when its life began, in ms
 *     ttl        N  when DynamoDB may delete the item, in seconds; missing: never
 *
 * Each part of a body is an item of its own: id is "ID#r#TAG#I" or "ID#i#TAG#I", body B,
 * made N (ms), ttl N. lifetime.c explains how long it stays.
 *
 * Every write is conditional on exactly the bytes of rec that it was decided on, or on the
 * absence of an item. These bytes hold the nonce, the fence and the times, so no two states
 * of a record are alike. They also hold a checksum; a reader checks whatever it does not
 * cover against what it covers.
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
    /* Bytes of a body in one item. DynamoDB allows 400 KB, with the names. */
    IDEM__PART_LEN = 384 * 1024,
    IDEM__PARTS_MAX = (IDEM_RESULT_MAX + IDEM__PART_LEN - 1) / IDEM__PART_LEN,
    IDEM__PART_NAME_MAX = IDEM__ITEM_ID_LEN + 3 + 2 * IDEM__TAG_LEN + 12,
};

/* With an item its fence is forgotten. So an item stays for this long after its record has
 * expired: longer than a request can be in flight, and longer than a clock that the service
 * accepts can be wrong. */
#define IDEM__TTL_GUARD_MS ((int64_t)2 * 3600 * 1000)
/* The parts of a body stay for this long after their head. */
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
    struct idem_slice stored;   /* Of INLINE: as stored, packed or not. */
    uint8_t tag[IDEM__TAG_LEN]; /* Of APART, as are the next two. */
    uint32_t parts;
    int64_t ttl_ms; /* The parts stay at least until then; or IDEM_NEVER. */
};

struct idem__item {
    struct idem_record record; /* Without the bytes of its bodies. */
    struct idem_slice head;    /* As it was read: the bytes of rec. */
    struct idem__body result;
    struct idem__body input;
    bool has_writes; /* A caller's writes were committed with it. */
    uint8_t writes[IDEM__TAG_LEN]; /* Their digest. */
};

/* The id of an item: hex digits and a NUL. */
void idem__item_id(const uint8_t id[IDEM_ID_LEN],
                   char ret_text[IDEM__ITEM_ID_LEN + 1]);

/* False: @text is not the id of a record's item. */
bool idem__item_id_read(struct idem_slice text, uint8_t ret_id[IDEM_ID_LEN]);

/* The id of part @i of a body; @kind is 'r' or 'i'. */
void idem__part_name(const uint8_t id[IDEM_ID_LEN], char kind,
                     const uint8_t tag[IDEM__TAG_LEN], uint32_t i,
                     char ret_name[IDEM__PART_NAME_MAX]);

/* False: @name is not the id of a part. *@ret_kind is 'r' or 'i'. */
bool idem__part_name_read(struct idem_slice name, uint8_t ret_id[IDEM_ID_LEN],
                          char *ret_kind, uint8_t ret_tag[IDEM__TAG_LEN]);

/* The most that DynamoDB can count as the size of the item, with the bodies that are inside
 * it. @head_len is the length of its head. */
size_t idem__item_size(const struct idem__item *item, size_t head_len);

/* Appends {"id":...}. @head is item->record encoded. @index: an open record goes into the
 * index. */
void idem__item_write(struct idem__buffer *out, const struct idem__item *item,
                      struct idem_slice head, bool index);

/* When DynamoDB may delete the item, in ms; or IDEM_NEVER. */
int64_t idem__item_ttl_ms(const struct idem_record *record);

/* Reads the item of @id (NULL: of any record). Checks the head by its checksum, scope and
 * key by the id, and by the head which bodies there are; the bytes of a body are checked
 * where they are used (task/bodies.c). The slices of the record and of the bodies point into
 * @memory, which is emptied first.
 *
 * IDEM_ECORRUPT  @object is not an item, or is damaged. @ret_item has id, scope and
 *                key, as far as they could be read.
 * IDEM_ENOMEM
 */
int idem__item_read(json_object *object, const uint8_t *id,
                    struct idem__buffer *memory, struct idem__item *ret_item,
                    struct idem_error *ret_error);

#endif
