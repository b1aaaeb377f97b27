/* Tests of the requests and answers of SQS. */
#include "aws/sqs/codec.h"

#include "test.h"

#define MD5_HELLO "5d41402abc4b2a76b9719d911017c592"

static struct idem__buffer out;

static void assert_written(const char *text)
{
    assert_false(out.failed);
    assert_text(idem__buffer_slice(&out), text);
    idem__buffer_free(&out);
}

/* A receive says how many, how long, and asks for the attributes of messages;
 * the rest only where it was asked for. */
TEST(receive, saysWhatWasAskedFor)
{
    struct idem__sqs_receive how = {.max = 7,
                                    .wait_s = 20,
                                    .visibility_s = -1,
                                    .attempt_id = NULL};

    idem__sqs_receive(&out, "http://h/1/q", &how);
    assert_written("{\"QueueUrl\":\"http://h/1/q\",\"MaxNumberOfMessages\":7,"
                   "\"WaitTimeSeconds\":20,\"AttributeNames\":[\"All\"],"
                   "\"MessageSystemAttributeNames\":[\"All\"]}");
    how.visibility_s = 0;
    how.attempt_id = "a\"b";
    idem__sqs_receive(&out, "q", &how);
    assert_written("{\"QueueUrl\":\"q\",\"MaxNumberOfMessages\":7,"
                   "\"WaitTimeSeconds\":20,\"VisibilityTimeout\":0,"
                   "\"ReceiveRequestAttemptId\":\"a\\\"b\","
                   "\"AttributeNames\":[\"All\"],"
                   "\"MessageSystemAttributeNames\":[\"All\"]}");
}

/* The entries of a batch have their place as their id. */
TEST(batch, numbersItsEntries)
{
    struct idem_slice receipts[] = {idem_str("r/0=="), idem_str("r\\1")};
    int64_t seconds[] = {0, 43200};

    idem__sqs_delete(&out, "q", receipts, 2);
    assert_written("{\"QueueUrl\":\"q\",\"Entries\":["
                   "{\"Id\":\"0\",\"ReceiptHandle\":\"r/0==\"},"
                   "{\"Id\":\"1\",\"ReceiptHandle\":\"r\\\\1\"}]}");
    idem__sqs_visibility(&out, "q", receipts, seconds, 2);
    assert_written("{\"QueueUrl\":\"q\",\"Entries\":["
                   "{\"Id\":\"0\",\"ReceiptHandle\":\"r/0==\","
                   "\"VisibilityTimeout\":0},"
                   "{\"Id\":\"1\",\"ReceiptHandle\":\"r\\\\1\","
                   "\"VisibilityTimeout\":43200}]}");
}

/* What is asked about a queue. */
TEST(queue, isAskedAbout)
{
    idem__sqs_attributes(&out, "q");
    assert_written("{\"QueueUrl\":\"q\",\"AttributeNames\":[\"All\"]}");
    idem__sqs_queue_url(&out, "name", "");
    assert_written("{\"QueueName\":\"name\"}");
    idem__sqs_queue_url(&out, "name", "0123");
    assert_written("{\"QueueName\":\"name\","
                   "\"QueueOwnerAWSAccountId\":\"0123\"}");
}

/* A message comes with all that is said of it, and its body is compared with its
 * MD5. */
TEST(messages, areRead)
{
    static const char answer[] =
        "{\"Messages\":[{\"MessageId\":\"m1\",\"ReceiptHandle\":\"r1\","
        "\"MD5OfBody\":\"" MD5_HELLO "\",\"Body\":\"hello\",\"Attributes\":{"
        "\"ApproximateReceiveCount\":\"3\",\"MessageGroupId\":\"g\","
        "\"SequenceNumber\":\"188\",\"SentTimestamp\":\"1\"},\"More\":[1]},"
        "{\"MessageId\":\"m2\",\"ReceiptHandle\":\"r2\",\"MD5OfBody\":"
        "\"" MD5_HELLO "\",\"Body\":\"hellO\"},"
        "{\"MessageId\":\"m3\",\"ReceiptHandle\":\"r3\",\"MD5OfBody\":"
        "\"d41d8cd98f00b204e9800998ecf8427e\",\"Body\":\"\"},"
        "{\"MessageId\":\"m4\",\"ReceiptHandle\":\"r4\",\"Body\":\"x\"}]}\n";
    struct idem__sqs_messages got;

    assert_ok(idem__sqs_read_messages(idem_str(answer), &got));
    assert_int_equal(4, got.len);
    assert_text(got.list[0].id, "m1");
    assert_text(got.list[0].receipt, "r1");
    assert_text(got.list[0].body, "hello");
    assert_text(got.list[0].group, "g");
    assert_text(got.list[0].sequence, "188");
    assert_int_equal(3, got.list[0].receives);
    assert_int_equal(1, got.list[0].sent_ms);
    assert_int_equal(0, got.list[1].sent_ms);
    assert_false(got.list[0].damaged);
    assert_true(got.list[1].damaged);
    assert_int_equal(0, got.list[1].group.len);
    assert_int_equal(0, got.list[1].receives);
    assert_false(got.list[2].damaged);
    assert_true(got.list[3].damaged);
    idem__sqs_messages_finish(&got);
}

/* An answer without messages is one. */
TEST(messages, mayBeNone)
{
    static const char *const rows[] = {"{}", "{\"Messages\":[]}",
                                       "{\"Messages\":null}"};
    struct idem__sqs_messages got;

    EACH(row, rows) {
        assert_ok(idem__sqs_read_messages(idem_str(*row), &got));
        assert_int_equal(0, got.len);
        idem__sqs_messages_finish(&got);
    }
}

#define ONE(members) "{\"Messages\":[{" members "}]}"
#define M1 "\"MessageId\":\"m\",\"ReceiptHandle\":\"r\",\"Body\":\"b\""

/* Whatever else comes is no answer, and nothing of it is believed. ROW(27) */
TEST(messages, ofAnotherShapeAreNone)
{
    static const char *const rows[] = {
        "",
        "<html>",
        "[]",
        "{} x",
        "{\"Messages\":{}}",
        "{\"Messages\":[7]}",
        ONE("\"ReceiptHandle\":\"r\",\"Body\":\"b\""),
        ONE("\"MessageId\":\"m\",\"Body\":\"b\""),
        ONE("\"MessageId\":\"\",\"ReceiptHandle\":\"r\",\"Body\":\"b\""),
        ONE("\"MessageId\":7,\"ReceiptHandle\":\"r\",\"Body\":\"b\""),
        ONE("\"MessageId\":\"m\",\"ReceiptHandle\":\"r\",\"Body\":{}"),
        ONE(M1 ",\"Attributes\":[]"),
        ONE(M1 ",\"Attributes\":{\"ApproximateReceiveCount\":3}"),
        ONE(M1 ",\"Attributes\":{\"ApproximateReceiveCount\":\"-1\"}"),
        ONE(M1 ",\"Attributes\":{\"ApproximateReceiveCount\":"
               "\"1000000001\"}"),
        ONE(M1 ",\"Attributes\":{\"MessageGroupId\":[]}"),
        "{\"Messages\":[{" M1 "},{" M1 "},{" M1 "},{" M1 "},{" M1 "},{" M1
        "},{" M1 "},{" M1 "},{" M1 "},{" M1 "},{" M1 "}]}",
    };
    struct idem__sqs_messages got;

    EACH(row, rows) {
        print_message("# %s\n", *row);
        assert_code(IDEM_ECORRUPT,
                    idem__sqs_read_messages(idem_str(*row), &got));
    }
}

/* Each entry of a batch is told on its own. */
TEST(batch, isReadEntryByEntry)
{
    static const char answer[] =
        "{\"Failed\":[{\"Id\":\"3\",\"Code\":\"ReceiptHandleIsInvalid\","
        "\"SenderFault\":true},"
        "{\"Id\":\"0\",\"Code\":\"InternalError\",\"SenderFault\":false},"
        "{\"Id\":\"4\",\"Code\":\"AWS.SimpleQueueService.MessageNotInflight\","
        "\"SenderFault\":true},"
        "{\"Id\":\"5\",\"Code\":\"SomethingElse\",\"SenderFault\":true}],"
        "\"Successful\":[{\"Id\":\"1\"},{\"Id\":\"2\"}]}";
    enum idem__sqs_entry got[6];

    assert_ok(idem__sqs_read_batch(idem_str(answer), 6, got));
    assert_int_equal(IDEM__SQS_RETRY, got[0]);
    assert_int_equal(IDEM__SQS_DONE, got[1]);
    assert_int_equal(IDEM__SQS_DONE, got[2]);
    assert_int_equal(IDEM__SQS_GONE, got[3]);
    assert_int_equal(IDEM__SQS_GONE, got[4]);
    assert_int_equal(IDEM__SQS_BROKEN, got[5]);
}

/* One that leaves an entry out, tells it twice or makes one up is none: a message
 * would be taken for deleted. ROW(27) */
TEST(batch, withoutEveryEntryIsNone)
{
    static const char *const rows[] = {
        "{}",
        "[]",
        "{\"Successful\":[{\"Id\":\"0\"}]}",
        "{\"Successful\":[{\"Id\":\"0\"},{\"Id\":\"0\"}]}",
        "{\"Successful\":[{\"Id\":\"0\"},{\"Id\":\"2\"}]}",
        "{\"Successful\":[{\"Id\":\"0\"},{\"Id\":\"\"}]}",
        "{\"Successful\":[{\"Id\":\"0\"},{\"Id\":\"x\"}]}",
        "{\"Successful\":[{\"Id\":\"0\"},{\"Id\":1}]}",
        "{\"Successful\":[{\"Id\":\"0\"},7]}",
        "{\"Successful\":{},\"Failed\":[{\"Id\":\"0\"},{\"Id\":\"1\"}]}",
        "{\"Successful\":[{\"Id\":\"0\"},{\"Id\":\"1\"}],"
        "\"Failed\":[{\"Id\":\"1\"}]}",
        "{\"Successful\":[{\"Id\":\"0\"}],"
        "\"Failed\":[{\"Id\":\"1\",\"SenderFault\":7}]}",
    };
    enum idem__sqs_entry got[2];

    EACH(row, rows) {
        print_message("# %s\n", *row);
        assert_code(IDEM_ECORRUPT,
                    idem__sqs_read_batch(idem_str(*row), 2, got));
    }
}

/* What a queue says of itself, and what it is taken for where it does not. */
TEST(attributes, areRead)
{
    struct idem__sqs_attributes got;

    assert_ok(idem__sqs_read_attributes(
        idem_str("{\"Attributes\":{\"VisibilityTimeout\":\"120\","
                 "\"MessageRetentionPeriod\":\"1209600\",\"FifoQueue\":"
                 "\"true\",\"ApproximateNumberOfMessages\":\"5\","
                 "\"ApproximateNumberOfMessagesNotVisible\":\"6\","
                 "\"RedrivePolicy\":\"{\\\"deadLetterTargetArn\\\":"
                 "\\\"arn:aws:sqs:eu-west-1:12:d.fifo\\\","
                 "\\\"maxReceiveCount\\\":3}\"}}"),
        &got));
    assert_int_equal(120, got.visibility_s);
    assert_int_equal(1209600, got.retention_s);
    assert_int_equal(5, got.waiting);
    assert_int_equal(6, got.in_flight);
    assert_true(got.fifo);
    assert_int_equal(3, got.max_receives);
    assert_string_equal("arn:aws:sqs:eu-west-1:12:d.fifo", got.dead_letter);

    assert_ok(idem__sqs_read_attributes(
        idem_str("{\"Attributes\":{\"RedrivePolicy\":\"{"
                 "\\\"deadLetterTargetArn\\\":\\\"a\\\","
                 "\\\"maxReceiveCount\\\":\\\"12\\\"}\"}}"),
        &got));
    assert_int_equal(12, got.max_receives);
    assert_int_equal(30, got.visibility_s);
    assert_false(got.fifo);

    assert_ok(idem__sqs_read_attributes(idem_str("{\"Attributes\":{}}"), &got));
    assert_int_equal(0, got.max_receives);
    assert_string_equal("", got.dead_letter);
    assert_int_equal(-1, got.waiting);
}

/* A policy that cannot be one is no queue without a policy. */
TEST(attributes, ofAnotherShapeAreNone)
{
    static const char *const rows[] = {
        "{}",
        "{\"Attributes\":[]}",
        "{\"Attributes\":{\"VisibilityTimeout\":30}}",
        "{\"Attributes\":{\"VisibilityTimeout\":\"43201\"}}",
        "{\"Attributes\":{\"FifoQueue\":true}}",
        "{\"Attributes\":{\"RedrivePolicy\":\"x\"}}",
        "{\"Attributes\":{\"RedrivePolicy\":\"{}\"}}",
        "{\"Attributes\":{\"RedrivePolicy\":\"{\\\"deadLetterTargetArn\\\":"
        "\\\"a\\\"}\"}}",
        "{\"Attributes\":{\"RedrivePolicy\":\"{\\\"deadLetterTargetArn\\\":"
        "\\\"a\\\",\\\"maxReceiveCount\\\":0}\"}}",
    };
    struct idem__sqs_attributes got;

    EACH(row, rows) {
        print_message("# %s\n", *row);
        assert_code(IDEM_ECORRUPT,
                    idem__sqs_read_attributes(idem_str(*row), &got));
    }
}

/* The URL of a queue that was asked for by its name. */
TEST(queueUrl, isRead)
{
    char url[IDEM__SQS_URL_MAX];

    assert_ok(
        idem__sqs_read_queue_url(idem_str("{\"QueueUrl\":\"http://h/1/q\"}"),
                                 url));
    assert_string_equal("http://h/1/q", url);
    assert_code(IDEM_ECORRUPT, idem__sqs_read_queue_url(idem_str("{}"), url));
    assert_code(IDEM_ECORRUPT,
                idem__sqs_read_queue_url(
                    idem_str("{\"QueueUrl\":\"a\\u0000b\"}"), url));
}

/* The parts of a queue's ARN. */
TEST(arn, isTakenApart)
{
    char region[64], account[32], name[96];

    assert_true(idem__sqs_read_arn("arn:aws-cn:sqs:cn-north-1:123:q.fifo",
                                   region, account, name));
    assert_string_equal("cn-north-1", region);
    assert_string_equal("123", account);
    assert_string_equal("q.fifo", name);
    assert_false(idem__sqs_read_arn("", region, account, name));
    assert_false(
        idem__sqs_read_arn("arn:aws:sns:r:1:q", region, account, name));
    assert_false(idem__sqs_read_arn("arn:aws:sqs:r:1:", region, account, name));
    assert_false(idem__sqs_read_arn("arn:aws:sqs:r:1", region, account, name));
    assert_false(idem__sqs_read_arn("arn:aws:sqs::1:q", region, account, name));
}
