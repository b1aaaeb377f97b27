/* The requests and answers of SQS, as JSON. */
#include "aws/sqs/codec.h"

#include "aws/client/json.h"
#include "base/hash.h"
#include "core/slice.h"

#include <json-c/json.h>

#include <stdio.h>

enum {
    DEPTH_MAX = 8,
    COUNT_MAX = 1000000000,
    MD5_HEX_LEN = 2 * IDEM__MD5_LEN,
};

#define TIME_MAX_MS 253402300799999 /* The end of the year 9999. */

/* ---- Writing ---------------------------------------------------------------- */

static void add_number(struct idem__buffer *out, const char *name,
                       int64_t number)
{
    idem__json_name(out, name);
    idem__buffer_u64(out, (uint64_t)(number < 0 ? 0 : number));
}

static void open_request(struct idem__buffer *out, const char *url)
{
    idem__buffer_str(out, "{");
    idem__json_pair(out, "QueueUrl", idem_str(url));
}

void idem__sqs_receive(struct idem__buffer *out, const char *url,
                       const struct idem__sqs_receive *how)
{
    open_request(out, url);
    add_number(out, "MaxNumberOfMessages", how->max);
    add_number(out, "WaitTimeSeconds", how->wait_s);
    if (how->visibility_s >= 0) {
        add_number(out, "VisibilityTimeout", how->visibility_s);
    }
    if (how->attempt_id != NULL) {
        idem__json_pair(out, "ReceiveRequestAttemptId",
                        idem_str(how->attempt_id));
    }
    /* Services from before 2024 know only the old name, AttributeNames. */
    idem__buffer_str(out, ",\"AttributeNames\":[\"All\"]"
                          ",\"MessageSystemAttributeNames\":[\"All\"]}");
}

static void add_entries(struct idem__buffer *out, const char *url,
                        const struct idem_slice *receipts,
                        const int64_t *seconds, size_t len)
{
    char id[16];
    size_t i;

    open_request(out, url);
    idem__buffer_str(out, ",\"Entries\":[");
    for (i = 0; i < len; i++) {
        (void)snprintf(id, sizeof(id), "%u", (unsigned)i);
        idem__buffer_str(out, i == 0 ? "{" : ",{");
        idem__json_pair(out, "Id", idem_str(id));
        idem__json_pair(out, "ReceiptHandle", receipts[i]);
        if (seconds != NULL) {
            add_number(out, "VisibilityTimeout", seconds[i]);
        }
        idem__buffer_str(out, "}");
    }
    idem__buffer_str(out, "]}");
}

void idem__sqs_delete(struct idem__buffer *out, const char *url,
                      const struct idem_slice *receipts, size_t receipts_len)
{
    add_entries(out, url, receipts, /* seconds= */ NULL, receipts_len);
}

void idem__sqs_visibility(struct idem__buffer *out, const char *url,
                          const struct idem_slice *receipts,
                          const int64_t *seconds, size_t receipts_len)
{
    add_entries(out, url, receipts, seconds, receipts_len);
}

void idem__sqs_attributes(struct idem__buffer *out, const char *url)
{
    open_request(out, url);
    idem__buffer_str(out, ",\"AttributeNames\":[\"All\"]}");
}

void idem__sqs_queue_url(struct idem__buffer *out, const char *name,
                         const char *account)
{
    idem__buffer_str(out, "{");
    idem__json_pair(out, "QueueName", idem_str(name));
    if (account[0] != '\0') {
        idem__json_pair(out, "QueueOwnerAWSAccountId", idem_str(account));
    }
    idem__buffer_str(out, "}");
}

/* ---- Reading ---------------------------------------------------------------- */

static struct json_object *parse(struct idem_slice text, int *ret_code)
{
    return idem__aws_json(text, json_type_object, DEPTH_MAX,
                          IDEM__SQS_ANSWER_MAX, ret_code);
}

/* Reads a string of at most @max bytes. Returns 1; 0 if there is none; or IDEM_ECORRUPT if
 * it is something else. */
static int get_text(struct json_object *object, const char *name, size_t max,
                    struct idem_slice *ret_text)
{
    struct json_object *value;
    size_t len;

    if (!json_object_object_get_ex(object, name, &value) || value == NULL) {
        return 0;
    }
    if (!json_object_is_type(value, json_type_string)) {
        return IDEM_ECORRUPT;
    }
    len = (size_t)json_object_get_string_len(value);
    if (len > max) {
        return IDEM_ECORRUPT;
    }
    *ret_text = idem_bytes(json_object_get_string(value), len);
    return 1;
}

/* Reads a string that must exist and not be empty. */
static int need_text(struct json_object *object, const char *name, size_t max,
                     struct idem_slice *ret_text)
{
    int rc = get_text(object, name, max, ret_text);

    return rc == 1 && ret_text->len > 0 ? 0 : IDEM_ECORRUPT;
}

/* Reads the number @name of @attributes, in digits and at most @max. Leaves *@ret_number
 * if there is none. */
static int get_number(struct json_object *attributes, const char *name,
                      int64_t max, int64_t *ret_number)
{
    struct idem_slice text;
    uint64_t number;
    int rc = get_text(attributes, name, 18, &text);

    if (rc == 1 && !idem__digits(text, (uint64_t)max, &number)) {
        rc = IDEM_ECORRUPT;
    }
    if (rc == 1) {
        *ret_number = (int64_t)number;
    }
    return rc < 0 ? rc : 0;
}

static int get_object(struct json_object *object, const char *name,
                      enum json_type type, struct json_object **ret_value)
{
    *ret_value = NULL;
    if (!json_object_object_get_ex(object, name, ret_value) ||
        *ret_value == NULL) {
        return 0;
    }
    return json_object_is_type(*ret_value, type) ? 1 : IDEM_ECORRUPT;
}

static int read_system_attributes(struct json_object *object,
                                  struct idem__sqs_message *message)
{
    struct json_object *attributes;
    int64_t receives = 0;
    int rc = get_object(object, "Attributes", json_type_object, &attributes);

    if (rc != 1) {
        return rc;
    }
    rc =
        get_number(attributes, "ApproximateReceiveCount", COUNT_MAX, &receives);
    message->receives = (uint64_t)receives;
    if (rc == 0) {
        rc = get_number(attributes, "SentTimestamp", TIME_MAX_MS,
                        &message->sent_ms);
    }
    if (rc == 0) {
        rc = get_text(attributes, "MessageGroupId", 128, &message->group);
    }
    if (rc >= 0) {
        rc = get_text(attributes, "SequenceNumber", 40, &message->sequence);
    }
    return rc < 0 ? rc : 0;
}

/* Compares the body with its @md5, which is in hex. 0 or IDEM_ENOMEM. */
static int look_for_damage(struct idem__sqs_message *message,
                           struct idem_slice md5)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[IDEM__MD5_LEN];
    const char *p = md5.base;
    size_t i;

    if (idem__md5(message->body, digest) != 0) {
        return IDEM_ENOMEM;
    }
    message->damaged = md5.len != MD5_HEX_LEN;
    for (i = 0; i < MD5_HEX_LEN && !message->damaged; i++) {
        message->damaged =
            p[i] != digits[digest[i / 2] >> (i % 2 ? 0 : 4) & 15];
    }
    return 0;
}

static int read_message(struct json_object *object,
                        struct idem__sqs_message *ret_message)
{
    struct idem__sqs_message message = {.receives = 0};
    struct idem_slice md5 = {NULL, 0};
    const struct {
        const char *name;
        size_t max;
        struct idem_slice *to;
        bool needed;
    } texts[] = {
        {"MessageId", 128, &message.id, true},
        {"ReceiptHandle", IDEM__SQS_RECEIPT_MAX, &message.receipt, true},
        {"Body", IDEM__SQS_BODY_MAX, &message.body, false},
        {"MD5OfBody", MD5_HEX_LEN, &md5, false},
    };
    size_t i;
    int rc;

    if (!json_object_is_type(object, json_type_object)) {
        return IDEM_ECORRUPT;
    }
    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        rc = get_text(object, texts[i].name, texts[i].max, texts[i].to);
        if (rc < 0 || (texts[i].needed && texts[i].to->len == 0)) {
            return IDEM_ECORRUPT;
        }
    }
    rc = read_system_attributes(object, &message);
    if (rc == 0) {
        rc = look_for_damage(&message, md5);
        *ret_message = message;
    }
    return rc;
}

int idem__sqs_read_messages(struct idem_slice answer,
                            struct idem__sqs_messages *ret_messages)
{
    struct idem__sqs_messages messages = {.len = 0};
    struct json_object *list;
    size_t len = 0;
    size_t i;
    int rc;
    struct json_object *object = parse(answer, &rc);

    if (object == NULL) {
        return rc;
    }
    rc = get_object(object, "Messages", json_type_array, &list);
    if (rc == 1) {
        len = json_object_array_length(list);
        rc = len > IDEM__SQS_BATCH ? IDEM_ECORRUPT : 0;
    }
    for (i = 0; rc == 0 && i < len; i++) {
        rc =
            read_message(json_object_array_get_idx(list, i), &messages.list[i]);
    }
    if (rc != 0) {
        (void)json_object_put(object);
        return rc;
    }
    messages.len = len;
    messages.memory = object;
    *ret_messages = messages;
    return 0;
}

void idem__sqs_messages_finish(struct idem__sqs_messages *messages)
{
    (void)json_object_put(messages->memory);
    messages->memory = NULL;
    messages->len = 0;
}

/* ---- Batches ---------------------------------------------------------------- */

/* Returns the meaning of the refusal of one entry. Older services put a prefix before the
 * names. */
static enum idem__sqs_entry classify_failure(struct idem_slice code,
                                             bool sender_fault)
{
    static const char old[] = "AWS.SimpleQueueService.";
    const char *p = code.base;

    if (code.len > sizeof(old) - 1 && memcmp(p, old, sizeof(old) - 1) == 0) {
        code = idem_bytes(p + sizeof(old) - 1, code.len - (sizeof(old) - 1));
    }
    if (idem__slice_equal(code, idem_str("ReceiptHandleIsInvalid")) ||
        idem__slice_equal(code, idem_str("MessageNotInflight")) ||
        idem__slice_equal(code, idem_str("InvalidParameterValue"))) {
        return IDEM__SQS_GONE; /* The last one names a receipt that ran out. */
    }
    return sender_fault ? IDEM__SQS_BROKEN : IDEM__SQS_RETRY;
}

/* Reads @object into the entry that it names. */
static int read_entry(struct json_object *object, bool failed, size_t len,
                      enum idem__sqs_entry *entries)
{
    struct idem_slice id;
    struct idem_slice code = {"", 0};
    struct json_object *fault;
    uint64_t i;

    if (need_text(object, "Id", 8, &id) != 0 ||
        !idem__digits(id, len - 1, &i) || entries[i] != 0) {
        return IDEM_ECORRUPT;
    }
    if (!failed) {
        entries[i] = IDEM__SQS_DONE;
        return 0;
    }
    if (get_text(object, "Code", 256, &code) < 0 ||
        get_object(object, "SenderFault", json_type_boolean, &fault) < 0) {
        return IDEM_ECORRUPT;
    }
    entries[i] = classify_failure(code, json_object_get_boolean(fault));
    return 0;
}

static int read_entries(struct json_object *object, const char *name,
                        bool failed, size_t len, enum idem__sqs_entry *entries)
{
    struct json_object *list;
    size_t i;
    int rc = get_object(object, name, json_type_array, &list);

    if (rc != 1) {
        return rc;
    }
    rc = 0;
    for (i = 0; rc == 0 && i < json_object_array_length(list); i++) {
        rc = read_entry(json_object_array_get_idx(list, i), failed, len,
                        entries);
    }
    return rc;
}

int idem__sqs_read_batch(struct idem_slice answer, size_t len,
                         enum idem__sqs_entry *ret_entries)
{
    enum idem__sqs_entry entries[IDEM__SQS_BATCH] = {0};
    size_t i;
    int rc;
    struct json_object *object = parse(answer, &rc);

    if (object == NULL) {
        return rc;
    }
    rc = read_entries(object, "Successful", /* failed= */ false, len, entries);
    if (rc == 0) {
        rc = read_entries(object, "Failed", /* failed= */ true, len, entries);
    }
    (void)json_object_put(object);
    for (i = 0; rc == 0 && i < len; i++) {
        rc = entries[i] == 0 ? IDEM_ECORRUPT : 0;
    }
    if (rc == 0) {
        memcpy(ret_entries, entries, len * sizeof(entries[0]));
    }
    return rc;
}

/* ---- The queue -------------------------------------------------------------- */

/* Reads a redrive policy. maxReceiveCount is a number or, in old policies, a string of its
 * digits: json-c converts both. */
static int read_redrive(struct idem_slice text,
                        struct idem__sqs_attributes *attributes)
{
    struct json_object *receives;
    struct idem_slice arn;
    int rc;
    struct json_object *policy = parse(text, &rc);

    if (policy == NULL) {
        return rc;
    }
    rc = need_text(policy, "deadLetterTargetArn",
                   sizeof(attributes->dead_letter) - 1, &arn);
    if (rc != 0) {
        goto done;
    }
    if (json_object_object_get_ex(policy, "maxReceiveCount", &receives)) {
        attributes->max_receives = json_object_get_int64(receives);
        memcpy(attributes->dead_letter, arn.base, arn.len);
        attributes->dead_letter[arn.len] = '\0';
    }
    if (attributes->max_receives < 1 || attributes->max_receives > COUNT_MAX ||
        strlen(attributes->dead_letter) != arn.len) {
        rc = IDEM_ECORRUPT;
    }
done:
    (void)json_object_put(policy);
    return rc;
}

static int read_numbers(struct json_object *list,
                        struct idem__sqs_attributes *attributes)
{
    const struct {
        const char *name;
        int64_t max;
        int64_t *to;
    } numbers[] = {
        {"VisibilityTimeout", IDEM__SQS_VISIBILITY_MAX_S,
         &attributes->visibility_s},
        {"MessageRetentionPeriod", COUNT_MAX, &attributes->retention_s},
        {"ApproximateNumberOfMessages", INT64_MAX, &attributes->waiting},
        {"ApproximateNumberOfMessagesNotVisible", INT64_MAX,
         &attributes->in_flight},
    };
    size_t i;
    int rc = 0;

    for (i = 0; rc == 0 && i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        rc = get_number(list, numbers[i].name, numbers[i].max, numbers[i].to);
    }
    return rc;
}

int idem__sqs_read_attributes(struct idem_slice answer,
                              struct idem__sqs_attributes *ret_attributes)
{
    struct idem__sqs_attributes attributes = {.visibility_s = 30,
                                              .retention_s = 345600,
                                              .waiting = -1,
                                              .in_flight = -1};
    struct json_object *list;
    struct idem_slice text;
    int rc;
    struct json_object *object = parse(answer, &rc);

    if (object == NULL) {
        return rc;
    }
    rc = get_object(object, "Attributes", json_type_object, &list);
    rc = rc == 1 ? read_numbers(list, &attributes) : IDEM_ECORRUPT;
    if (rc == 0) {
        rc = get_text(list, "FifoQueue", 8, &text);
        attributes.fifo = rc == 1 && idem__slice_equal(text, idem_str("true"));
    }
    if (rc >= 0) {
        rc = get_text(list, "RedrivePolicy", 2048, &text);
        rc = rc == 1 && text.len > 0 ? read_redrive(text, &attributes) : rc;
    }
    (void)json_object_put(object);
    if (rc >= 0) {
        *ret_attributes = attributes;
    }
    return rc < 0 ? rc : 0;
}

int idem__sqs_read_queue_url(struct idem_slice answer,
                             char ret_url[IDEM__SQS_URL_MAX])
{
    struct idem_slice url;
    int rc;
    struct json_object *object = parse(answer, &rc);

    if (object == NULL) {
        return rc;
    }
    rc = need_text(object, "QueueUrl", IDEM__SQS_URL_MAX - 1, &url);
    if (rc != 0) {
        goto done;
    }
    if (memchr(url.base, '\0', url.len) != NULL) {
        rc = IDEM_ECORRUPT;
        goto done;
    }
    memcpy(ret_url, url.base, url.len);
    ret_url[url.len] = '\0';
done:
    (void)json_object_put(object);
    return rc;
}

/* Takes the part of @text up to the next colon, or to its end if it is the last. */
static bool take_part(const char **text, bool last, char *to, size_t cap)
{
    size_t len = last ? strlen(*text) : strcspn(*text, ":");

    if (len == 0 || len >= cap || (!last && (*text)[len] != ':')) {
        return false;
    }
    memcpy(to, *text, len);
    to[len] = '\0';
    *text += len + (last ? 0 : 1);
    return true;
}

bool idem__sqs_read_arn(const char *arn, char ret_region[64],
                        char ret_account[32], char ret_name[96])
{
    char word[16];

    return take_part(&arn, false, word, sizeof(word)) &&
           strcmp(word, "arn") == 0 &&
           take_part(&arn, false, word, sizeof(word)) &&
           take_part(&arn, false, word, sizeof(word)) &&
           strcmp(word, "sqs") == 0 && take_part(&arn, false, ret_region, 64) &&
           take_part(&arn, false, ret_account, 32) &&
           take_part(&arn, true, ret_name, 96);
}
