/* What one library says in its item: the parts that its layout has. Pure. */
#ifndef IDEM_STORE_DYNAMODB_FOREIGN_H
#define IDEM_STORE_DYNAMODB_FOREIGN_H

#include "store/dynamodb/layout.h"

/* Longest text that one item holds together with everything else. */
enum {
    IDEM__FOREIGN_MAX = 380 * 1024,
};

/* How a layout writes and reads its own attributes. */
struct idem__foreign {
    const char *key;            /* Of the table. */
    const char *ttl;            /* What DynamoDB deletes by. */
    const char *result;         /* What holds the result of completed work. */
    bool native;                /* As a DynamoDB value, and not as JSON text. */
    bool deletes;               /* Released records. */
    const char *const *control; /* All else that a write depends on. */

    /* Appends ,"name":value for each of its own attributes but the result. */
    void (*write)(struct idem__buffer *out, const struct idem_record *record);

    /* True: @object says what write() says of @record. */
    bool (*agrees)(json_object *object, const struct idem_record *record);

    /* Makes up the record that @object stands for, but for identity and result.
     * *@ret_result: it says that there is one. @record comes with the fence of
     * our own record that it took the place of, or 0. */
    int (*read)(json_object *object, struct idem_record *record,
                struct idem__buffer *memory, bool *ret_result,
                struct idem_error *error);
};

extern const struct idem__foreign idem__foreign_powertools;
extern const struct idem__foreign idem__foreign_powertools_native;
extern const struct idem__foreign idem__foreign_locker;

/* ---- Helpers ---- */

/* Appends ,"name": */
void idem__foreign_name(struct idem__buffer *out, const char *name);

/* The whole number in the attribute @name, without its fraction: 1; 0: there is
 * none; IDEM_ECORRUPT. */
int idem__foreign_number(json_object *object, const char *name,
                         int64_t *ret_number);

/* True: the attribute @name is the string @text (NULL: it is not there, or is the
 * null value). */
bool idem__foreign_is(json_object *object, const char *name, const char *text);

/* Copies the string in the attribute @name, which may be missing, to @memory, which
 * has room; cut to @max bytes. */
int idem__foreign_text(json_object *object, const char *name, size_t max,
                       struct idem__buffer *memory, struct idem_slice *ret);

int idem__foreign_corrupt(struct idem_error *error, const char *what);

#endif
