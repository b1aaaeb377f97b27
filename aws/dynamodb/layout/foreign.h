/* Another library's item: the parts that its layout has. Pure. */
#ifndef IDEM_AWS_DYNAMODB_LAYOUT_FOREIGN_H
#define IDEM_AWS_DYNAMODB_LAYOUT_FOREIGN_H

#include "aws/dynamodb/layout/json.h"
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
    struct idem__layout_kind kind;
    bool answers; /* ATTR_DATA is an answer of HTTP, see envelope.c. */
    bool native;  /* ATTR_DATA is a DynamoDB value, and not JSON text. */
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
extern const struct idem__foreign idem__foreign_lock_token;

/* Of the table's layout, which is not our own. */
const struct idem__foreign *idem__foreign_of(
    const struct idem__table_conf *table);

/* The functions of each of them: foreign.c. */
extern const struct idem__layout_ops idem__foreign_ops;

/* Its read(): foreign_read.c. */
int idem__foreign_read(const struct idem__table_conf *table,
                       json_object *object, const uint8_t *id,
                       struct idem__buffer *memory,
                       struct idem__scratch *scratch,
                       struct idem__item *ret_item,
                       struct idem_error *ret_error);

/* The library's own attributes of @item: its result, or what @words has.
 * *@ret_result: it is the result. False: it is not there. */
bool idem__foreign_data(const struct idem__foreign *f,
                        const struct idem__item *item,
                        struct idem__buffer *words, struct idem_slice *ret_data,
                        bool *ret_result);

/* Appends the rest of a write over @object, conditional on all that was seen of it:
 * foreign.c. */
void idem__foreign_condition(struct idem__buffer *out,
                             const struct idem__table_conf *table,
                             json_object *object);

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

/* ---- Answers of HTTP: envelope.c ---- */

/* An answer of HTTP as the object that a function on Lambda responds with. Pure.
 *
 *     {"statusCode": 201, "headers": {"Location": "/orders/42"}, "body": "..."}
 */

/* Appends the object for @result, whose metadata is a head of <idem/http.h>. A body
 * that is not UTF-8 is base64, as isBase64Encoded says; values of one header become
 * one. False: the metadata is not such a head, and nothing is appended. */
bool idem__envelope_write(struct idem__buffer *out,
                          const struct idem_result *result);

/* Takes the object @text apart; the slices of *@ret_result point into @memory, which
 * must have room for all of @text once more and 64 bytes. Headers that nobody but the
 * first caller may be given are left out. 1; 0: it is not such an object, or one that
 * no head holds; IDEM_ENOMEM. */
int idem__envelope_read(struct idem_slice text, struct idem__buffer *memory,
                        struct idem_result *ret_result);

#endif
