/* The layouts of other libraries: what they share, and how they differ. Pure. */
#ifndef IDEM_AWS_DYNAMODB_LAYOUT_FOREIGN_H
#define IDEM_AWS_DYNAMODB_LAYOUT_FOREIGN_H

#include "aws/dynamodb/layout/json.h"
#include "aws/dynamodb/layout/layout.h"

/* The largest item that we write. DynamoDB allows 400 KB. */
enum {
    IDEM__FOREIGN_MAX = 380 * 1024,
};

/* Our attributes, see layout.h. */
#define IDEM__FOREIGN_HEAD "idem"
#define IDEM__FOREIGN_RESULT "idem_result"
#define IDEM__FOREIGN_INPUT "idem_input"

/* How a layout writes and reads the library's attributes. */
struct idem__foreign {
    struct idem__layout_kind kind;
    bool answers; /* ATTR_DATA can be an HTTP response, see envelope.c. */
    bool native;  /* ATTR_DATA is an attribute value, and not JSON text. */
    const struct idem__leased_words *words; /* Of layout_leased.c. */

    /* Appends ,"name":value for each attribute of the library but the result. */
    void (*write)(struct idem__buffer *out,
                  const struct idem__table_conf *table,
                  const struct idem_record *record);

    /* True if the library's attributes in @object are those that write() makes of
     * @record. */
    bool (*agrees)(const struct idem__table_conf *table, json_object *object,
                   const struct idem_record *record);

    /* Makes up a record from the library's attributes, without its identity and its
     * result. *@ret_result: the item has a result. On entry record->fence is that of our
     * record in the item, which no longer counts; 0: there is none. */
    int (*read)(const struct idem__table_conf *table, json_object *object,
                struct idem_record *record, struct idem__buffer *memory,
                bool *ret_result, struct idem_error *error);

    /* Appends what ATTR_DATA holds in place of the result's bytes, as JSON or as plain
     * text. False: it holds these bytes. NULL: it always does. */
    bool (*tells)(const struct idem__item *item, struct idem__buffer *text);
};

extern const struct idem__foreign idem__foreign_powertools;
extern const struct idem__foreign idem__foreign_powertools_native;
extern const struct idem__foreign idem__foreign_idempotency_store;
extern const struct idem__foreign idem__foreign_http_idempotency;
extern const struct idem__foreign idem__foreign_lock_token;

/* The layout of the table, which is not our own. */
const struct idem__foreign *idem__foreign_of(
    const struct idem__table_conf *table);

/* The functions that all of these layouts have: foreign.c. */
extern const struct idem__layout_ops idem__foreign_ops;

/* Their read(): foreign_read.c. */
int idem__foreign_read(const struct idem__table_conf *table,
                       json_object *object, const uint8_t *id,
                       struct idem__buffer *memory,
                       struct idem__scratch *scratch,
                       struct idem__item *ret_item,
                       struct idem_error *ret_error);

/* Gets what ATTR_DATA holds for @item: the result (*@ret_result), or something in its place,
 * which @words then keeps. False: @item has no ATTR_DATA. */
bool idem__foreign_data(const struct idem__foreign *f,
                        const struct idem__item *item,
                        struct idem__buffer *words, struct idem_slice *ret_data,
                        bool *ret_result);

/* Appends the condition of a write over @object: status, times and our head are as they
 * are there: foreign.c. */
void idem__foreign_condition(struct idem__buffer *out,
                             const struct idem__table_conf *table,
                             json_object *object);

/* ---- Helpers ---- */

/* Appends ,"name": */
void idem__foreign_name(struct idem__buffer *out, const char *name);

/* Reads the number in the attribute @name, without a fraction. Returns 1, 0 if the attribute
 * is missing or null, or IDEM_ECORRUPT. */
int idem__foreign_number(json_object *object, const char *name,
                         int64_t *ret_number);

/* True if the attribute @name is the string @text (NULL: if it is missing or null). */
bool idem__foreign_is(json_object *object, const char *name, const char *text);

/* Copies the string in the attribute @name to @memory, which has room, cut to @max bytes.
 * One that is missing or null is empty. Returns 0 or IDEM_ECORRUPT. */
int idem__foreign_text(json_object *object, const char *name, size_t max,
                       struct idem__buffer *memory, struct idem_slice *ret);

int idem__foreign_corrupt(struct idem_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- HTTP responses: envelope.c ---- */

/* An HTTP response as the object that a function on Lambda returns. Pure.
 *
 *     {"statusCode": 201, "headers": {"Location": "/orders/42"}, "body": "..."}
 */

/* Appends the object for @result, whose metadata is a head of <idem/http.h>. A body that is
 * not UTF-8 becomes base64, with isBase64Encoded; several values of a header become one.
 * False: the metadata is not such a head, and nothing is appended. */
bool idem__envelope_write(struct idem__buffer *out,
                          const struct idem_result *result);

/* Reads the object @text. The slices of *@ret_result point into @memory, which must have
 * room for another copy of @text and 64 bytes. Leaves headers out that only the first caller
 * may get. Returns 1, 0 if @text is not such an object or a head cannot hold it, or
 * IDEM_ENOMEM. */
int idem__envelope_read(struct idem_slice text, struct idem__buffer *memory,
                        struct idem_result *ret_result);

#endif
