/* Answers of SQS, which may come from anybody. Whatever is read is within its
 * bounds; a batch is read only with every entry in it; what is written of a receipt
 * is JSON that says the same. The first byte says which answer it is. */
#include "aws/sqs/codec.h"
#include "fuzz.h"

#include <json-c/json.h>

static void read_messages(struct idem_slice answer)
{
    struct idem__sqs_messages got;
    size_t i;

    if (idem__sqs_read_messages(answer, &got) != 0) {
        return;
    }
    must(got.len <= IDEM__SQS_BATCH);
    for (i = 0; i < got.len; i++) {
        must(got.list[i].id.len > 0 && got.list[i].id.len <= 128);
        must(got.list[i].receipt.len > 0 &&
             got.list[i].receipt.len <= IDEM__SQS_RECEIPT_MAX);
        must(got.list[i].body.len <= IDEM__SQS_BODY_MAX);
        must(got.list[i].group.len <= 128);
    }
    idem__sqs_messages_finish(&got);
}

static void read_batch(struct idem_slice answer, size_t len)
{
    enum idem__sqs_entry got[IDEM__SQS_BATCH] = {0};
    size_t i;
    int rc = idem__sqs_read_batch(answer, len, got);

    for (i = 0; i < len; i++) {
        must(rc == 0 ? got[i] >= IDEM__SQS_DONE && got[i] <= IDEM__SQS_BROKEN
                     : got[i] == 0);
    }
}

static void read_attributes(struct idem_slice answer)
{
    struct idem__sqs_attributes got;

    if (idem__sqs_read_attributes(answer, &got) != 0) {
        return;
    }
    must(got.visibility_s >= 0 &&
         got.visibility_s <= IDEM__SQS_VISIBILITY_MAX_S);
    must((got.max_receives == 0) == (got.dead_letter[0] == '\0'));
}

static void write_receipt(struct idem_slice receipt)
{
    struct idem__buffer out = {NULL, 0, 0, false};
    struct json_object *object;

    idem__sqs_delete(&out, "q", &receipt, 1);
    must(!out.failed);
    idem__buffer_add(&out, "", 1);
    object = json_tokener_parse((const char *)out.base);
    must(object != NULL);
    (void)json_object_put(object);
    idem__buffer_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct idem_slice rest;
    char url[IDEM__SQS_URL_MAX];

    if (len == 0) {
        return 0;
    }
    rest = idem_bytes(data + 1, len - 1);
    switch (data[0] % 16) {
    case 0:
        read_messages(rest);
        break;
    case 1:
        read_attributes(rest);
        break;
    case 2:
        if (idem__sqs_read_queue_url(rest, url) == 0) {
            must(strlen(url) > 0);
        }
        break;
    case 3:
        write_receipt(rest);
        break;
    default:
        read_batch(rest, data[0] % 16 - 3 > IDEM__SQS_BATCH
                             ? IDEM__SQS_BATCH
                             : (size_t)(data[0] % 16 - 3));
    }
    return 0;
}
