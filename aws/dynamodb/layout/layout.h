/* The layout of the items in a table: how a record is an item of it, and back. Pure.
 *
 * There is our own, see item.h, and those of other libraries' tables: layout=NAME in
 * the store's URL. An item of these is one that the library understands: its
 * attributes, words and units. Beside them the whole record is kept in an
 * attribute that the library does not know and leaves alone:
 *
 *     idem         B  the head of the record, as idem__record_encode() writes it
 *     idem_result  B  its bytes, where the library's own attribute does not hold
 *     idem_input   B  just these; likewise
 *
 * A write of the library's own replaces the item, and with it our record, or changes
 * its attributes under our record. So the record counts only where the library's
 * attributes are still those that go with it; else the item's own attributes
 * hold, and the record is made up of them.
 *
 * Every write of ours is conditional on all that was seen: ours and theirs. The
 * head of an item that was read is, here, that condition, as JSON.
 *
 * The names of the library's attributes are those of the table's conf, which
 * idem__layout_settle() has filled in.
 */
#ifndef IDEM_AWS_DYNAMODB_LAYOUT_LAYOUT_H
#define IDEM_AWS_DYNAMODB_LAYOUT_LAYOUT_H

#include "aws/dynamodb/layout/item.h"
#include "key/tree.h"

struct idem__layout_kind;

/* The attributes of another library's item whose names its users choose. */
enum idem__attr {
    IDEM__ATTR_KEY = 0, /* The key of the table. */
    IDEM__ATTR_STATUS,
    IDEM__ATTR_EXPIRY, /* DynamoDB deletes by it. */
    IDEM__ATTR_LOCK,   /* When work in progress may be taken over. */
    IDEM__ATTR_DATA,   /* The result. */
    IDEM__ATTR_SORT,   /* With it the sort key of the table is the key of a
                          record, and ATTR_KEY has the same text in each. */
    IDEM__ATTRS,
};

enum {
    IDEM__ATTR_MAX = 64,       /* Bytes of a name. */
    IDEM__PARTITION_MAX = 255, /* Bytes of the text in ATTR_KEY. */
};

/* A store's knowledge of its table. */
struct idem__table_conf {
    char name[256];
    const struct idem__layout_kind *layout; /* NULL: idem's own. */
    /* Names; "": there is none, or before idem__layout_settle() the usual one.
     * Those of a table of idem's own are fixed, and not here. */
    char attrs[IDEM__ATTRS][IDEM__ATTR_MAX + 1];
    char partition[IDEM__PARTITION_MAX + 1]; /* With ATTR_SORT. */
    bool index; /* Open records are in the index "open". */
    bool pack;  /* Large results are packed. */
};

/* Memory that readings share. */
struct idem__scratch {
    struct idem__tree tree;
    struct idem__buffer text;
    struct idem__buffer words;
};
void idem__scratch_free(struct idem__scratch *scratch);

/* How a layout keeps a record as an item. */
struct idem__layout_ops {
    /* IDEM_EINVALID: the table cannot hold this record's scope or key. NULL: it holds
     * any. */
    int (*check)(const struct idem__table_conf *table, const struct idem_op *op,
                 struct idem_error *ret_error);

    /* IDEM_EINVALID: the encoded record is too large for one item of this layout. NULL:
     * whatever does not fit goes to other items. */
    int (*fits)(const struct idem__item *item, size_t head_len,
                struct idem_error *ret_error);

    /* The text in the key of the item for the record (@id, @key); it may be in
     * @buf. */
    struct idem_slice (*name)(const uint8_t *id, struct idem_slice key,
                              char buf[IDEM__ITEM_ID_LEN + 1]);

    /* Appends the key of the item @name, an object that is left open. */
    void (*put_key)(struct idem__buffer *out,
                    const struct idem__table_conf *table,
                    struct idem_slice name);

    /* Appends the item. @head is item->record encoded. */
    void (*put_item)(struct idem__buffer *out,
                     const struct idem__table_conf *table,
                     const struct idem__item *item, struct idem_slice head);

    /* Appends the condition that the item is the one whose head is @old; NULL: that
     * there is none. */
    void (*put_condition)(struct idem__buffer *out,
                          const struct idem__table_conf *table,
                          const struct idem_slice *old);

    /* See idem__layout_read(). */
    int (*read)(const struct idem__table_conf *table, json_object *object,
                const uint8_t *id, struct idem__buffer *memory,
                struct idem__scratch *scratch, struct idem__item *ret_item,
                struct idem_error *ret_error);
};

/* The particulars of a layout. */
struct idem__layout_kind {
    const char *name; /* In the store's URL; ours has none. */
    const struct idem__layout_ops *ops;

    /* Nobody else writes such items: what was written is what is there, and its head
     * is all that the next write is conditional on. */
    bool ours;
    /* There are items beside those of records: parts of bodies, and limits. */
    bool parts;
    /* Open records may be in the index "open". */
    bool index;
    /* Its users find open work by an index on ATTR_STATUS. */
    bool status_index;
    /* A record that was released is an item that is not there. */
    bool drops;
    /* Sentences on the promises of idem that it does not keep; the last is NULL. */
    const char *const *gives_up;

    /* ---- Attributes; lists of them end with NULL, or are NULL ---- */

    const char *attrs[IDEM__ATTRS]; /* Their usual names; NULL: it has none. */
    bool fixed_names;               /* Nobody chooses them. */
    bool sorts;                     /* ATTR_SORT may be set. */
    const char *input;              /* The input of the work. */
    const char *const *control;     /* A write depends on these, too. */
    const char *const *fixed;       /* Others, whose names nobody chooses. */

    /* ---- A page of records, and one of a purge: how all but these are left out,
     * and of these the bytes of bodies. NULL: not at all ---- */

    const char *scan_filter;
    const char *sweep_filter;
};

/* IDEM_EINVALID: others write such items, too, and keep neither the number of failures
 * nor a pause. */
int idem__layout_check_budgets(const struct idem__table_conf *table,
                               struct idem_error *ret_error);

/* The layout of the table. */
const struct idem__layout_kind *idem__layout_of(
    const struct idem__table_conf *table);

/* NULL: there is none of this name. */
const struct idem__layout_kind *idem__layout_find(const char *name);

/* The names of all layouts but our own, in one sentence's words. */
void idem__layout_list(char *buf, size_t cap);

/* The setting of the store's URL that names @attr: "key-attr". */
const char *idem__layout_setting(enum idem__attr attr);

/* Takes @name as the name of @attr. IDEM_EINVALID: it cannot be one. */
int idem__layout_name_attr(struct idem__table_conf *table, enum idem__attr attr,
                           const char *name, struct idem_error *ret_error);

/* Fills in the names that were not set. IDEM_EINVALID: one was set that the layout
 * does not have, or two attributes have one name, or a sort key has no partition. */
int idem__layout_settle(struct idem__table_conf *table,
                        struct idem_error *ret_error);

/* The key of the item that has the mark of a move; no record's. */
#define IDEM__MOVE_NAME "idem#move"

/* Attributes: the one that has a record's key, and that which DynamoDB deletes by. */
const char *idem__layout_key(const struct idem__table_conf *table);
const char *idem__layout_ttl(const struct idem__table_conf *table);

/* IDEM_EINVALID: the table cannot hold this record's scope or key. */
int idem__layout_check(const struct idem__table_conf *table,
                       const struct idem_op *op, struct idem_error *ret_error);

/* IDEM_EINVALID: the encoded record is too large for one item of this layout. */
int idem__layout_fits(const struct idem__table_conf *table,
                      const struct idem__item *item, size_t head_len,
                      struct idem_error *ret_error);

/* Appends the key of the item @name, an object that is left open:
 * {"id":{"S":"..."}. */
void idem__layout_put_key(struct idem__buffer *out,
                          const struct idem__table_conf *table,
                          struct idem_slice name);

/* Appends the key of the item for the record (@id, @key), a whole object. */
void idem__layout_put_record_key(struct idem__buffer *out,
                                 const struct idem__table_conf *table,
                                 const uint8_t id[IDEM_ID_LEN],
                                 struct idem_slice key);

/* Appends the condition of a write: the item is the one whose head is @old; NULL:
 * there is none. */
void idem__layout_put_condition(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem_slice *old);

/* The rest of a PutItem, whose table is in @out; @old is the head of the item
 * that was read, NULL: there was none. */
void idem__layout_put(struct idem__buffer *out,
                      const struct idem__table_conf *table,
                      const struct idem__item *item, struct idem_slice head,
                      const struct idem_slice *old);

/* True: @record was released, and its item is deleted. */
bool idem__layout_deletes(const struct idem__table_conf *table,
                          const struct idem_record *record);

/* Reads an item that must be of @id (NULL: of the one that it names); see
 * idem__item_read(). @ret_item->head is what a write over it depends on. */
int idem__layout_read(const struct idem__table_conf *table, json_object *object,
                      const uint8_t *id, struct idem__buffer *memory,
                      struct idem__scratch *scratch,
                      struct idem__item *ret_item,
                      struct idem_error *ret_error);

#endif
