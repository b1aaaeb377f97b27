/* Memory that runs out while an answer of a service is read is not damage of it. */
#include "aws/client/json.h"
#include "aws/dynamodb/task/answer.h"

#include "nth.h"
#include "test.h"

#include <errno.h>

/* Texts that json-c reads to the end, or refuses, in each way. */
static const struct {
    const char *text;
    size_t len; /* 0: all of it. */
    int code;
} rows[] = {
    {"{\"Item\":{\"id\":{\"S\":\"abc\"},\"n\":[1,{\"N\":\"2\"}]}} ", 0,
     IDEM_OK},
    {"[]", 0, IDEM_ECORRUPT},
    {"{\"a\":", 0, IDEM_ECORRUPT},
    {"{} {", 0, IDEM_ECORRUPT},
    {"{},", 0, IDEM_ECORRUPT},
    {"{\"a\" 1}", 0, IDEM_ECORRUPT},
    {"{\"a\":\"\xff\"}", 0, IDEM_ECORRUPT},
    {"{}\0x", 4, IDEM_ECORRUPT},
    {"{\"a\"\0:1}", 8, IDEM_ECORRUPT},
    {"{\"a\":1\0}", 8, IDEM_ECORRUPT},
    {"{\"a\":tru}", 0, IDEM_ECORRUPT},
};

static struct json_object *read_row(size_t i, int *ret_code)
{
    struct idem_slice text = idem_str(rows[i].text);

    text.len = rows[i].len == 0 ? text.len : rows[i].len;
    return idem__aws_json(text, json_type_object, 8, SIZE_MAX, ret_code);
}

TEST(json, isRefusedForDamage)
{
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        struct json_object *value;
        int code = IDEM_OK;

        value = read_row(i, &code);
        print_message("# %s\n", rows[i].text);
        assert_int_equal(value != NULL, rows[i].code == IDEM_OK);
        if (value == NULL) {
            assert_code(rows[i].code, code);
        }
        (void)json_object_put(value);
    }
}

/* Every allocation from the n-th on fails: json-c before 0.17 dies of some that fail
 * alone. */
TEST(json, isNotDamagedWithoutMemory)
{
    static struct nth_page page = {.kill = -1, .left = -1};
    struct idem_slice text = idem_str(rows[0].text);
    struct idem__aws_request request = {.outcome = IDEM__AWS_ANSWERED,
                                        .status = 200,
                                        .sends = 1,
                                        .answer =
                                            (uint8_t *)(uintptr_t)text.base,
                                        .answer_len = text.len};
    int64_t refused = 0;
    int64_t n;

    nth_use(&page);
    for (n = 0; n < 100; n++) {
        struct json_object *value;
        struct idem__answer answer;
        int code = IDEM_OK;

        nth_fail(NTH_ALLOC, n, /* on= */ true, ENOMEM);
        value = read_row(0, &code);
        nth_fail(NTH_ALLOC, n, /* on= */ true, ENOMEM);
        idem__answer_read(&request, "orders", &answer);
        nth_stop();
        assert_int_equal(value == NULL, answer.body == NULL);
        if (value == NULL) {
            refused++;
            assert_code(IDEM_ENOMEM, code);
            assert_int_equal(answer.said, IDEM__SAID_UNKNOWN);
            assert_code(IDEM_ENOMEM, answer.error.code);
        }
        (void)json_object_put(value);
        idem__answer_finish(&answer);
    }
    assert_true(refused > 10 && refused < 100);
}
