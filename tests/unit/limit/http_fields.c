/* What HTTP says of a decision. */
#include <idem/limit.h>

#include "test.h"

static struct idem_limit_request limit;
static struct idem_limited limited;
static struct idem_limit_http fields;

static void begin(void)
{
    limit = (struct idem_limit_request)IDEM_LIMIT_INIT;
    limit.name = idem_str("uploads");
    limit.subject = idem_str("u1");
    limit.request = idem_str("r1");
    limit.at_ms = 1510067704370;
    limit.per_ms = IDEM_LIMIT_DAY;
    limit.max = 8;
    limited = (struct idem_limited){
        .admitted = true,
        .remaining = 7,
        .start_ms = 1510012800000,
        .end_ms = 1510099200000,
    };
}

/* The policy, what is left, and when there is more: in whole seconds, never too
 * few. */
TEST(fields, sayWhatIsLeft)
{
    begin();
    assert_ok(
        idem_limit_fields(&limit, &limited, 1510095600001, &fields, &why));
    assert_string_equal(fields.policy, "\"uploads\";q=8;w=86400");
    assert_string_equal(fields.limit, "\"uploads\";r=7;t=3600");
    assert_string_equal(fields.retry_after, "");
}

/* Who is refused is told when to come back; at once, if the window is over. */
TEST(fields, sayWhenToComeBack)
{
    begin();
    limited.admitted = false;
    limited.remaining = 0;
    assert_ok(
        idem_limit_fields(&limit, &limited, 1510099199001, &fields, &why));
    assert_string_equal(fields.limit, "\"uploads\";r=0;t=1");
    assert_string_equal(fields.retry_after, "1");
    assert_ok(
        idem_limit_fields(&limit, &limited, 1510099200000, &fields, &why));
    assert_string_equal(fields.retry_after, "0");
    assert_ok(idem_limit_fields(&limit, &limited, INT64_MAX, &fields, &why));
    assert_string_equal(fields.limit, "\"uploads\";r=0;t=0");
    limit.per_ms = 1500;
    assert_ok(
        idem_limit_fields(&limit, &limited, 1510099200000, &fields, &why));
    assert_string_equal(fields.policy, "\"uploads\";q=8;w=2");
}

/* A name cannot end its string, nor the header; the longest of the worst fits. */
TEST(fields, quoteTheName)
{
    static uint8_t worst[IDEM_LIMIT_NAME_MAX];
    size_t i;

    begin();
    limit.name = idem_bytes("a\"b\\c\r\nX: 1%\x7f\xc3\xa9", 15);
    assert_ok(idem_limit_fields(&limit, &limited, 0, &fields, &why));
    assert_string_equal(fields.policy,
                        "\"a\\\"b\\\\c%0D%0AX: 1%25%7F%C3%A9\";q=8;w=86400");
    memset(worst, 0xff, sizeof(worst));
    limit.name = idem_bytes(worst, sizeof(worst));
    limit.max = IDEM_LIMIT_MAX;
    limit.per_ms = IDEM_LIMIT_PER_MAX;
    limited.remaining = UINT64_MAX;
    limited.end_ms = INT64_MAX;
    assert_ok(idem_limit_fields(&limit, &limited, 0, &fields, &why));
    assert_non_null(strstr(fields.policy, "\";q=1000000000000;w=31622400"));
    assert_non_null(strstr(fields.limit, "\";r=18446744073709551615;t="));
    for (i = 0; fields.limit[i] != '\0'; i++) {
        assert_between(fields.limit[i], 0x20, 0x7e);
    }
}

/* What is no limit has no fields. */
TEST(fields, checkTheLimit)
{
    begin();
    limit.max = 0;
    assert_code(IDEM_EINVALID,
                idem_limit_fields(&limit, &limited, 0, &fields, &why));
    assert_why("max");
}
