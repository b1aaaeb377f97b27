/* Tests of the requests and answers of Step Functions. */
#include "aws/stepfunctions/codec.h"

#include "test.h"

#define MACHINE "arn:aws:states:eu-west-1:123456789012:stateMachine:Orders"
#define ARN "arn:aws:states:eu-west-1:123456789012:execution:Orders:a"
#define EXPRESS "arn:aws:states:eu-west-1:123456789012:express:Orders:a:b"

static struct idem__buffer out;

static void assert_written(const char *text)
{
    assert_false(out.failed);
    assert_text(idem__buffer_slice(&out), text);
    idem__buffer_free(&out);
}

/* The ARN of a state machine gives the region, itself without version or alias, and
 * that of its executions. */
TEST(machine, isReadFromItsArn)
{
    static const char *const arns[] = {MACHINE, MACHINE ":7", MACHINE ":PROD"};
    struct idem__sfn_machine machine;
    size_t i;

    for (i = 0; i < COUNT(arns); i++) {
        assert_true(idem__sfn_read_machine(arns[i], &machine));
        assert_string_equal("eu-west-1", machine.region);
        assert_string_equal(MACHINE, machine.arn);
        assert_string_equal(
            "arn:aws:states:eu-west-1:123456789012:execution:Orders",
            machine.executions);
    }
}

/* Anything else is not one. */
TEST(machine, isNotAnythingElse)
{
    static const char *const arns[] = {
        "",
        "Orders",
        ARN,
        EXPRESS,
        MACHINE ":1:2",
        MACHINE " ",
        MACHINE "\"",
        "arn:aws:sqs:eu-west-1:123456789012:stateMachine:Orders",
        "arn::states:eu-west-1:123456789012:stateMachine:Orders",
        "arn:aws:states::123456789012:stateMachine:Orders",
        "arn:aws:states:eu-west-1::stateMachine:Orders",
        "arn:aws:states:eu-west-1:123456789012:stateMachine:",
        "arn:aws:states:eu-west-1:123456789012:stateMachine"};
    struct idem__sfn_machine machine;
    char big[IDEM__SFN_ARN_MAX + 2];
    size_t i;

    for (i = 0; i < COUNT(arns); i++) {
        print_message("# %s\n", arns[i]);
        assert_false(idem__sfn_read_machine(arns[i], &machine));
    }
    memset(big, 'x', sizeof(big));
    memcpy(big, MACHINE, strlen(MACHINE));
    big[sizeof(big) - 1] = '\0';
    assert_false(idem__sfn_read_machine(big, &machine));
    big[sizeof(big) - 2] = '\0';
    assert_true(idem__sfn_read_machine(big, &machine));
}

/* The input is a text in the request, whatever is in it. */
TEST(request, carriesTheInputAsText)
{
    idem__sfn_start(&out, MACHINE ":7", "a", idem_str("{\"b\":\n1}"));
    assert_written("{\"stateMachineArn\":\"" MACHINE ":7\",\"name\":\"a\","
                   "\"input\":\"{\\\"b\\\":\\n1}\"}");
    idem__sfn_describe_execution(&out, "arn:x", "a");
    assert_written("{\"executionArn\":\"arn:x:a\"}");
    idem__sfn_describe_machine(&out, MACHINE);
    assert_written("{\"stateMachineArn\":\"" MACHINE "\"}");
}

/* A start is an ARN and a date, in seconds with a fraction or without. */
TEST(started, isAnArnAndADate)
{
    struct idem_execution e;

    assert_code(
        0, idem__sfn_read_started(idem_str("{\"executionArn\":\"" ARN
                                           "\",\"startDate\":1486768320.123}"),
                                  &e));
    assert_string_equal(ARN, e.arn);
    assert_true(e.start_ms == 1486768320123);
    assert_false(e.express);
    assert_code(0, idem__sfn_read_started(idem_str(
                                              "{\"executionArn\":\"" EXPRESS
                                              "\",\"startDate\":1.48676832E9}"),
                                          &e));
    assert_true(e.start_ms == 1486768320000);
    assert_true(e.express);
}

/* An answer of another shape is not believed. */
TEST(started, isNothingElse)
{
    static const char *const answers[] = {
        "",
        "[]",
        "{}",
        "{\"executionArn\":\"" ARN "\"}",
        "{\"startDate\":1}",
        "{\"executionArn\":1,\"startDate\":1}",
        "{\"executionArn\":\"" ARN "\",\"startDate\":\"1\"}",
        "{\"executionArn\":\"" ARN "\",\"startDate\":-1}",
        "{\"executionArn\":\"" ARN "\",\"startDate\":1e300}",
        "{\"executionArn\":\"arn:\\n\",\"startDate\":1}",
        "{\"executionArn\":\"Orders\",\"startDate\":1}",
        "{\"executionArn\":\"" ARN "\",\"startDate\":1}x",
        "{\"executionArn\":\"" ARN "\",\"startDate\":1"};
    struct idem_execution e;
    size_t i;

    for (i = 0; i < COUNT(answers); i++) {
        print_message("# %s\n", answers[i]);
        assert_code(IDEM_ECORRUPT,
                    idem__sfn_read_started(idem_str(answers[i]), &e));
    }
}

/* The inputs of two executions are the same if their bytes are. */
TEST(execution, isComparedByItsInput)
{
#define HEAD "{\"executionArn\":\"" ARN "\",\"startDate\":1"
    struct idem_execution e;
    bool same = false;

    assert_code(0, idem__sfn_read_execution(
                       idem_str(HEAD ",\"input\":\"{\\\"a\\\":1}\"}"),
                       idem_str("{\"a\":1}"), &e, &same));
    assert_true(same);
    assert_code(0, idem__sfn_read_execution(
                       idem_str(HEAD ",\"input\":\"{\\\"a\\\":1}\"}"),
                       idem_str("{\"a\": 1}"), &e, &same));
    assert_false(same);
    assert_code(IDEM_EDENIED,
                idem__sfn_read_execution(idem_str(HEAD "}"), idem_str("{}"), &e,
                                         &same));
    assert_code(IDEM_ECORRUPT,
                idem__sfn_read_execution(idem_str(HEAD ",\"input\":{}}"),
                                         idem_str("{}"), &e, &same));
}

/* Only a STANDARD state machine is taken for one whose names protect. */
TEST(type, isStandardOrProtectsNothing)
{
    bool express = false;

    assert_code(0, idem__sfn_read_type(idem_str("{\"type\":\"EXPRESS\"}"),
                                       &express));
    assert_true(express);
    assert_code(0,
                idem__sfn_read_type(idem_str("{\"type\":\"NEW\"}"), &express));
    assert_true(express);
    assert_code(0, idem__sfn_read_type(idem_str("{\"type\":\"STANDARD\"}"),
                                       &express));
    assert_false(express);
    assert_code(IDEM_ECORRUPT, idem__sfn_read_type(idem_str("{}"), &express));
}
