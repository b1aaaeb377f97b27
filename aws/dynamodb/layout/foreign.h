/* Another library's item: the parts that its layout has. Pure. */
#ifndef IDEM_AWS_DYNAMODB_LAYOUT_FOREIGN_H
#define IDEM_AWS_DYNAMODB_LAYOUT_FOREIGN_H

#include "aws/dynamodb/layout/layout.h"

/* Longest text that one item holds together with everything else. */
enum {
    IDEM__FOREIGN_MAX = 380 * 1024,
};

/* Attributes of ours, see layout.h. */
#define IDEM__FOREIGN_HEAD "idem"
#define IDEM__FOREIGN_RESULT "idem_result"
#define IDEM__FOREIGN_INPUT "idem_input"

/* How a layout writes and reads its own attributes. */
struct idem__foreign {
    const char *attrs[IDEM__ATTRS]; /* Their usual names; NULL: it has none. */
    const char *input;              /* The input of the work; NULL: none. */
    bool sorts;                     /* ATTR_SORT may be set. */
    bool answers; /* ATTR_DATA is an answer of HTTP, see envelope.h. */
    bool native;  /* ATTR_DATA is a DynamoDB value, and not JSON text. */
    bool
        status_index; /* Its users find open work by an index on ATTR_STATUS. */
    bool drops;       /* A record that was released is an item that is not
                         there. */
    const char *const *control; /* Attributes that a write depends on beside
                                   these; or
                                    NULL. The last is NULL. */
    const char *const *fixed; /* Attributes besides, whose names nobody chooses;
                                    likewise. */
    const char *const *gives_up;            /* Sentences; the last is NULL. */
    const struct idem__leased_words *words; /* Of layout_leased.c. */

    /* Appends ,"name":value for each of its own attributes but the result. */
    void (*write)(struct idem__buffer *out,
                  const struct idem__table_conf *table,
                  const struct idem_record *record);

    /* True: @object says what write() says of @record. */
    bool (*agrees)(const struct idem__table_conf *table, json_object *object,
                   const struct idem_record *record);

    /* Makes up the record of @object, but for identity and result.
     * *@ret_result: it says that there is one. @record comes with the fence of
     * our own record that it took the place of, or 0. */
    int (*read)(const struct idem__table_conf *table, json_object *object,
                struct idem_record *record, struct idem__buffer *memory,
                bool *ret_result, struct idem_error *error);

    /* Appends what ATTR_DATA says of @item other than its bytes, as JSON or as
     * plain text; false: nothing. NULL: it never says anything else. */
    bool (*tells)(const struct idem__item *item, struct idem__buffer *text);
};

extern const struct idem__foreign idem__foreign_powertools;
extern const struct idem__foreign idem__foreign_powertools_native;
extern const struct idem__foreign idem__foreign_idempotency_store;
extern const struct idem__foreign idem__foreign_http_idempotency;
extern const struct idem__foreign idem__foreign_locker;
extern const struct idem__foreign idem__foreign_lock_token;

/* Of the table's layout, which is not our own. */
const struct idem__foreign *idem__foreign_of(
    const struct idem__table_conf *table);

/* ---- Helpers ---- */

/* Appends ,"name": */
void idem__foreign_name(struct idem__buffer *out, const char *name);

/* The whole number in the attribute @name, without its fraction: 1; 0: there is
 * none, or the null value; IDEM_ECORRUPT. */
int idem__foreign_number(json_object *object, const char *name,
                         int64_t *ret_number);

/* True: the attribute @name is the string @text (NULL: it is not there, or is the
 * null value). */
bool idem__foreign_is(json_object *object, const char *name, const char *text);

/* Copies the string in the attribute @name, which may be missing, to @memory, which
 * has room; cut to @max bytes. */
int idem__foreign_text(json_object *object, const char *name, size_t max,
                       struct idem__buffer *memory, struct idem_slice *ret);

int idem__foreign_corrupt(struct idem_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
