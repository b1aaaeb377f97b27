/* Events as JSON. */
#include "aws/lambda/event.h"

#include "core/error.h"

/* ---- Parsing ----------------------------------------------------------- */

/* The text that @tree has read is JSON of one meaning; json-c makes objects of
 * it. */
static struct json_object *make_value(struct idem_slice text)
{
    struct json_tokener *tokener =
        json_tokener_new_ex(IDEM__TREE_DEPTH_MAX + 1);
    struct json_object *value;

    if (tokener == NULL) {
        return NULL;
    }
    value = json_tokener_parse_ex(tokener, text.base, (int)text.len);
    if (json_tokener_get_error(tokener) == json_tokener_continue) {
        /* A number has an end only with the NUL after it. */
        value = json_tokener_parse_ex(tokener, "", 1);
    }
    json_tokener_free(tokener);
    return value;
}

int idem__lambda_read(struct idem__tree *tree, struct idem_slice text,
                      struct json_object **ret_value,
                      struct idem_error *ret_error)
{
    int rc = idem__tree_read(tree, text, ret_error);

    if (rc != 0) {
        return rc;
    }
    *ret_value = make_value(text);
    return *ret_value == NULL && idem__tree_at(tree, 0)->kind != IDEM__TREE_NULL
               ? idem__error_plain(ret_error, IDEM_ENOMEM)
               : 0;
}

struct json_object *idem__lambda_parse(struct idem_slice text)
{
    struct idem__tree tree = {.halves = false};
    struct json_object *value = NULL;

    if (idem__lambda_read(&tree, text, &value, NULL) != 0) {
        value = NULL;
    }
    idem__tree_free(&tree);
    return value;
}

bool idem__lambda_is_json(struct idem_slice text)
{
    struct idem__tree tree = {.halves = false};
    bool is = idem__tree_read(&tree, text, NULL) == 0;

    idem__tree_free(&tree);
    return is;
}

/* ---- Records ----------------------------------------------------------- */

/* The number of the node of the member "Records". */
static uint32_t find_records(const struct idem__tree *tree)
{
    uint32_t at = 1;

    while (at < idem__tree_len(tree)) {
        const struct idem__tree_node *node = idem__tree_at(tree, at);
        struct idem_slice name = idem__tree_name(tree, node);

        if (name.len == 7 && memcmp(name.base, "Records", 7) == 0) {
            break;
        }
        at = node->end;
    }
    return at;
}

struct idem_slice idem__lambda_record_text(const struct idem__tree *tree,
                                           uint32_t *at)
{
    const struct idem__tree_node *node;

    if (*at == 0) {
        *at = find_records(tree) + 1;
    }
    node = idem__tree_at(tree, *at);
    *at = node->end;
    return idem__tree_raw(tree, node);
}

/* ---- Members ----------------------------------------------------------- */

struct idem_slice idem__lambda_text(struct json_object *object,
                                    const char *name)
{
    struct json_object *member;

    if (!json_object_object_get_ex(object, name, &member) ||
        !json_object_is_type(member, json_type_string)) {
        return idem_bytes(NULL, 0);
    }
    return idem_bytes(json_object_get_string(member),
                      (size_t)json_object_get_string_len(member));
}

struct json_object *idem__lambda_object(struct json_object *object,
                                        const char *name)
{
    struct json_object *member;

    return json_object_object_get_ex(object, name, &member) &&
                   json_object_is_type(member, json_type_object)
               ? member
               : NULL;
}
