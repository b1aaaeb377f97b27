/* Which parts of a body an answer is about. */
#include "aws/dynamodb/task/parts.h"

bool idem__parts_number(const struct idem__parts *parts, struct idem_slice name,
                        uint32_t *ret_i)
{
    char expected[IDEM__PART_NAME_MAX];
    uint32_t i;

    for (i = 0; i < parts->body->parts; i++) {
        idem__part_name(parts->id, parts->kind, parts->body->tag, i, expected);
        if (name.len == strlen(expected) &&
            memcmp(name.base, expected, name.len) == 0) {
            *ret_i = i;
            return true;
        }
    }
    return false;
}

/* The id in {"PutRequest":{"Item":...}} or {"DeleteRequest":{"Key":...}}. */
static bool name_of(json_object *write, struct idem_slice *ret_name)
{
    json_object *inner = NULL;
    json_object *item = NULL;

    return ((json_object_object_get_ex(write, "PutRequest", &inner) &&
             json_object_object_get_ex(inner, "Item", &item)) ||
            (json_object_object_get_ex(write, "DeleteRequest", &inner) &&
             json_object_object_get_ex(inner, "Key", &item))) &&
           idem__json_attribute(item, "id", "S", ret_name) == 1;
}

uint32_t idem__parts_mark(const struct idem__parts *parts, bool *done,
                          unsigned carried, json_object *unprocessed)
{
    size_t n = json_object_is_type(unprocessed, json_type_array)
                   ? json_object_array_length(unprocessed)
                   : 0;
    bool back[IDEM__PARTS_MAX] = {false};
    uint32_t marked = 0;
    uint32_t i;
    size_t k;

    for (k = 0; k < n; k++) {
        struct idem_slice name;

        if (name_of(json_object_array_get_idx(unprocessed, k), &name) &&
            idem__parts_number(parts, name, &i)) {
            back[i] = true;
        }
    }
    for (i = 0; i < parts->body->parts && carried > 0; i++) {
        if (!done[i]) {
            carried--;
            done[i] = !back[i];
            marked += !back[i];
        }
    }
    return marked;
}
