/* How large the table is, as the service says it. */
#include "aws/dynamodb/table/admin.h"
#include "core/error.h"

#include <idem/dynamodb.h>

static uint64_t number(json_object *object, const char *name)
{
    json_object *value = NULL;
    int64_t n;

    if (!json_object_object_get_ex(object, name, &value)) {
        return 0;
    }
    n = json_object_get_int64(value);
    return n > 0 ? (uint64_t)n : 0;
}

int idem_dynamodb_size(const char *place, struct idem_dynamodb_extent *ret_size,
                       struct idem_error *ret_error)
{
    struct idem__answer answer;
    struct idem__admin admin;
    json_object *table;
    int rc;

    if (ret_size->size != sizeof(*ret_size)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "size: begin with IDEM_DYNAMODB_EXTENT_INIT");
    }
    rc = idem__admin_open_readonly(place, &admin, ret_error);
    if (rc != 0) {
        return rc;
    }
    idem__admin_begin(&admin);
    idem__buffer_str(&admin.out, "}");
    idem__admin_call(&admin, IDEM__TARGET("DescribeTable"), /* safe= */ true,
                     &answer);
    if (answer.said != IDEM__SAID_OK) {
        rc = answer.error.code;
        if (ret_error != NULL) {
            *ret_error = answer.error;
        }
    } else if (!json_object_object_get_ex(answer.body, "Table", &table)) {
        rc = idem__error(ret_error, IDEM_ECONFIG,
                         "the service at this endpoint is not DynamoDB");
    } else {
        ret_size->items = number(table, "ItemCount");
        ret_size->bytes = number(table, "TableSizeBytes");
    }
    idem__answer_finish(&answer);
    idem__admin_close(&admin);
    return rc;
}
