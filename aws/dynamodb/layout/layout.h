/* The layout of the items in a table: writes a record as an item, and reads it back. Pure.
 *
 * A table has our own layout (item.h), or with layout=NAME in the store's URL that of
 * another library. The library understands such an item: it has the library's attributes,
 * words and units. Beside them are attributes that the library does not know and leaves
 * alone, which hold our whole record:
 *
 *     idem         B  the head of the record, as idem__record_encode() writes it
 *     idem_result  B  the bytes of the result, unless the library's attribute holds
 *                     exactly these
 *     idem_input   B  the bytes of the input
 *
 * A write by the library replaces the item, and with it our record, or changes its own
 * attributes and leaves our record there. So our record counts only while the library's
 * attributes match it. If they do not, the record is made up from them.
 *
 * Every write of ours is conditional on the attributes by which both sides decide, as we
 * read them: the library's status and times, and our head. The head of an item that was read
 * (struct idem__item) is this condition, as JSON.
 *
 * The table's conf has the names of the library's attributes, once idem__layout_settle()
 * has filled them in.
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
    IDEM__ATTR_EXPIRY, /* When DynamoDB may delete the item. */
    IDEM__ATTR_LOCK,   /* When work in progress may be taken over. */
    IDEM__ATTR_DATA,   /* The result. */
    IDEM__ATTR_SORT,   /* If set, the sort key of the table has the key of a
                          record, and ATTR_KEY the same text for all. */
    IDEM__ATTRS,
};

enum {
    IDEM__ATTR_MAX = 64,       /* Bytes of a name. */
    IDEM__PARTITION_MAX = 255, /* Bytes of the text in ATTR_KEY. */
};

/* The settings of a store for its table. */
struct idem__table_conf {
    char name[256];
    const struct idem__layout_kind *layout; /* NULL: idem's own. */
    /* Names of attributes. "": the layout has none, or idem__layout_settle() has not put
     * the usual name here yet. Our own layout has fixed names, which are not here. */
    char attrs[IDEM__ATTRS][IDEM__ATTR_MAX + 1];
    char partition[IDEM__PARTITION_MAX +
                   1]; /* The text in ATTR_KEY, with ATTR_SORT. */
    bool index;        /* Open records are in the index "open". */
};

/* Memory that a task keeps from one reading of an item to the next. */
struct idem__scratch {
    struct idem__tree tree;
    struct idem__buffer text;
    struct idem__buffer words;
};
void idem__scratch_free(struct idem__scratch *scratch);

/* The functions of a layout. */
struct idem__layout_ops {
    /* See idem__layout_check(). NULL: the layout holds any record, and takes any op. */
    int (*check)(const struct idem__table_conf *table, const struct idem_op *op,
                 struct idem_error *ret_error);

    /* See idem__layout_fits(). NULL: a body that does not fit goes into other items. */
    int (*fits)(const struct idem__item *item, size_t head_len,
                struct idem_error *ret_error);

    /* Returns the text in the key of the item for the record (@id, @key); the text may be
     * in @buf. */
    struct idem_slice (*name)(const uint8_t *id, struct idem_slice key,
                              char buf[IDEM__ITEM_ID_LEN + 1]);

    /* Appends the key of the item @name, as an object that is left open. */
    void (*put_key)(struct idem__buffer *out,
                    const struct idem__table_conf *table,
                    struct idem_slice name);

    /* Appends the item. @head is item->record encoded. */
    void (*put_item)(struct idem__buffer *out,
                     const struct idem__table_conf *table,
                     const struct idem__item *item, struct idem_slice head);

    /* Appends the condition that the item still has the head @old; NULL: that it does
     * not exist. */
    void (*put_condition)(struct idem__buffer *out,
                          const struct idem__table_conf *table,
                          const struct idem_slice *old);

    /* See idem__layout_read(). */
    int (*read)(const struct idem__table_conf *table, json_object *object,
                const uint8_t *id, struct idem__buffer *memory,
                struct idem__scratch *scratch, struct idem__item *ret_item,
                struct idem_error *ret_error);
};

/* A layout. */
struct idem__layout_kind {
    const char *name; /* In the store's URL; ours has none. */
    const struct idem__layout_ops *ops;

    /* Only idem writes such items: the last write shows what is in the table, and the next
     * write is conditional on the head alone. */
    bool ours;
    /* The table also has items for parts of bodies, and for limits. */
    bool parts;
    /* Open records may be in the index "open". */
    bool index;
    /* Its users find open work by an index on ATTR_STATUS. */
    bool status_index;
    /* A release deletes the item. */
    bool drops;
    /* Sentences on the promises of idem that it does not keep; the last is NULL. */
    const char *const *gives_up;

    /* ---- Attributes; lists of them end with NULL, or are NULL ---- */

    const char *attrs[IDEM__ATTRS]; /* Their usual names; NULL: it has none. */
    bool fixed_names;               /* The user cannot choose them. */
    bool sorts;                     /* ATTR_SORT may be set. */
    const char *input;              /* Has the input of the work. */
    const char *const *control;     /* A write is conditional on these, too. */
    const char *const *fixed;       /* Others that the user cannot rename. */

    /* ---- Filters of a page: scan_filter leaves all but records out, sweep_filter, for a
     * purge, limits and the bytes of bodies. NULL: there is none ---- */

    const char *scan_filter;
    const char *sweep_filter;
};

/* IDEM_EINVALID: other programs write such items, too, and would keep neither the number
 * of failures nor a pause. */
int idem__layout_check_budgets(const struct idem__table_conf *table,
                               struct idem_error *ret_error);

/* The layout of the table. */
const struct idem__layout_kind *idem__layout_of(
    const struct idem__table_conf *table);

/* NULL: no layout has this name. */
const struct idem__layout_kind *idem__layout_find(const char *name);

/* Writes the names of all layouts but our own, as "a, b and c". */
void idem__layout_list(char *buf, size_t cap);

/* The setting of the store's URL that names @attr: "key-attr". */
const char *idem__layout_setting(enum idem__attr attr);

/* Sets the name of @attr. IDEM_EINVALID: @name is not valid, or an attribute of ours has
 * it. */
int idem__layout_name_attr(struct idem__table_conf *table, enum idem__attr attr,
                           const char *name, struct idem_error *ret_error);

/* Fills in the usual names where none were set. IDEM_EINVALID: the layout does not have an
 * attribute that was named, two attributes have the same name, or only one of sort key and
 * partition was set. */
int idem__layout_settle(struct idem__table_conf *table,
                        struct idem_error *ret_error);

/* The key of the item that has the mark of a move (task/gate.c). No record has it. */
#define IDEM__MOVE_NAME "idem#move"

/* The names of the attribute with the key of a record, and of the one by which DynamoDB
 * deletes. */
const char *idem__layout_key(const struct idem__table_conf *table);
const char *idem__layout_ttl(const struct idem__table_conf *table);

/* IDEM_EINVALID: a table of this layout cannot hold the scope or the key of @op, or what
 * it counts or commits. */
int idem__layout_check(const struct idem__table_conf *table,
                       const struct idem_op *op, struct idem_error *ret_error);

/* IDEM_EINVALID: the record with its bodies is too large for one item of this layout. */
int idem__layout_fits(const struct idem__table_conf *table,
                      const struct idem__item *item, size_t head_len,
                      struct idem_error *ret_error);

/* Appends the key of the item @name, as an object that is left open:
 * {"id":{"S":"..."}. */
void idem__layout_put_key(struct idem__buffer *out,
                          const struct idem__table_conf *table,
                          struct idem_slice name);

/* Appends the key of the item for the record (@id, @key), as a whole object. */
void idem__layout_put_record_key(struct idem__buffer *out,
                                 const struct idem__table_conf *table,
                                 const uint8_t id[IDEM_ID_LEN],
                                 struct idem_slice key);

/* Appends the condition of a write: the item still has the head @old; NULL: it does not
 * exist. */
void idem__layout_put_condition(struct idem__buffer *out,
                                const struct idem__table_conf *table,
                                const struct idem_slice *old);

/* Appends the rest of a PutItem, after the name of the table; of a DeleteItem, if the layout
 * deletes the record. @old is the head of the item that was read; NULL: there was none. */
void idem__layout_put(struct idem__buffer *out,
                      const struct idem__table_conf *table,
                      const struct idem__item *item, struct idem_slice head,
                      const struct idem_slice *old);

/* True if @record was released, and the layout deletes its item. */
bool idem__layout_deletes(const struct idem__table_conf *table,
                          const struct idem_record *record);

/* Reads the item of @id (NULL: of any record); see idem__item_read(). A write over it is
 * conditional on @ret_item->head. */
int idem__layout_read(const struct idem__table_conf *table, json_object *object,
                      const uint8_t *id, struct idem__buffer *memory,
                      struct idem__scratch *scratch,
                      struct idem__item *ret_item,
                      struct idem_error *ret_error);

#endif
