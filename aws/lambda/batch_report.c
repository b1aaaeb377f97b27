/* The report of what failed in a batch. */
#include "aws/lambda/batch.h"

#include "aws/lambda/text.h"

/* In a stream Lambda sends again all that follows the first failure anyway. */
static bool is_reported(const struct batch *b, const struct item *item)
{
    if (item->state == ITEM_DONE ||
        (item->state == ITEM_WAITS && b->rule->shape == IDEM__LAMBDA_STREAM)) {
        return false;
    }
    /* One message that is there twice has one name. */
    return item->first == NULL || item->first->state == ITEM_DONE ||
           item->first->name.len != item->name.len ||
           memcmp(item->first->name.base, item->name.base, item->name.len) != 0;
}

void idem__batch_report(struct batch *b)
{
    struct idem__buffer *to = &b->lambda->response;
    bool any = false;
    size_t i;

    b->lambda->error_type[0] = '\0';
    idem__buffer_reset(to, to->cap);
    idem__buffer_str(to, "{\"batchItemFailures\":[");
    for (i = 0; i < b->len; i++) {
        if (is_reported(b, &b->items[i])) {
            idem__buffer_str(to, any ? ",{" : "{");
            idem__lambda_member(to, "itemIdentifier", b->items[i].name);
            idem__buffer_str(to, "}");
            any = true;
        }
    }
    idem__buffer_str(to, "]}");
}
