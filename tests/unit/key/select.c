/* Tests of src/key/select.c. */
#include "test.h"

#include "heap.h"

#include <errno.h>
#include <idem/key.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define M (1024 * 1024)

static struct idem_select_options options = IDEM_SELECT_OPTIONS_INIT;

/* Compiles, runs once, and compares. */
static void check(const char *program, const char *json, const char *want)
{
    struct idem_select *select;
    struct idem_slice output;

    assert_ok(idem_select_create(program, &options, &select, &why));
    assert_ok(idem_select_run(select, idem_str(json), &output, &why));
    assert_text(output, want);
    idem_select_destroy(select);
}

static void refuse(const char *program, const char *json, const char *word)
{
    struct idem_select *select;
    struct idem_slice output = {NULL, 0};
    int rc;

    assert_ok(idem_select_create(program, &options, &select, &why));
    rc = idem_select_run(select, idem_str(json), &output, &why);
    if (rc != IDEM_EINVALID || strstr(why.text, word) == NULL) {
        fail_with("%s: %d %s", program, rc, rc == 0 ? "it ran" : why.text);
    }
    idem_select_destroy(select);
}

/* One value is selected, as compact JSON. */
TEST(select, givesOneValue)
{
    check(".a", "{\"a\": {\"b\": [1, \"x\"]}}", "{\"b\":[1,\"x\"]}");
    check(".a", "{\"a\": \"order-42\"}", "\"order-42\"");
    check("[.a, .b.c]", "{\"a\": 1, \"b\": {\"c\": true}}", "[1,true]");
    check(".", "\"\\u00e9\\ud83d\\ude00\"", "\"\xc3\xa9\xf0\x9f\x98\x80\"");
    check(".body | fromjson | .id", "{\"body\": \"{\\\"id\\\": 7}\"}", "7");
    check(".a", "{\"a\": false}", "false");
    check("if .a > 10.5 then \"more\" else \"less\" end", "{\"a\": 10.75}",
          "\"more\"");
}

/* Several values, also of a program with a comment, are an array; one is, too. */
TEST(select, givesSeveralValues)
{
    struct idem_select *select;

    options.several = true;
    check(".a, .b", "{\"a\": 12.50, \"b\": \"EUR\"}", "[12.50,\"EUR\"]");
    check(".a # the sum", "{\"a\": [1]}", "[[1]]");
    check(".[]", "[1, null]", "[1,null]");
    refuse(".a, .b", "{}", "not there");
    refuse(".[]", "[]", "selects []");
    assert_code(IDEM_EINVALID,
                idem_select_create(".a] | [.b", &options, &select, &why));
    options.several = false;
    refuse(".a, .b", "{\"a\": 1, \"b\": 2}", "more than one value");
}

/* A text is compiled once and runs over many inputs; one that failed before
 * changes nothing. */
TEST(select, runsManyTimes)
{
    struct idem_select *select;
    struct idem_slice output;
    char json[64], want[32];
    int i;

    assert_ok(idem_select_create(".id", NULL, &select, &why));
    for (i = 0; i < 20; i++) {
        (void)snprintf(json, sizeof(json), "{\"id\":\"order-%d\"}", i);
        (void)snprintf(want, sizeof(want), "order-%d", i);
        assert_ok(idem_select_run(select, idem_str(json), &output, &why));
        assert_text(idem_select_text(select, output), want);
        assert_code(IDEM_EINVALID,
                    idem_select_run(select, idem_str("[1]"), &output, &why));
    }
    assert_ok(
        idem_select_run(select, idem_str("{\"id\":[\"a\"]}"), &output, &why));
    assert_text(idem_select_text(select, output), "[\"a\"]");
    idem_select_destroy(select);
}

/* Numbers keep their digits wherever the program moves them. */
TEST(select, keepsTheDigitsOfNumbers)
{
    check(".", "12345678901234567890", "12345678901234567890");
    check(".a", "{\"a\":1.0}", "1.0");
    check("{x: .a, y: .b}", "{\"a\":1e21,\"b\":-0}", "{\"x\":1e21,\"y\":-0}");
    check("[.[] | .n]", "[{\"n\":0.10},{\"n\":9007199254740993}]",
          "[0.10,9007199254740993]");
    /* What looks like one of our marks is a string all the same. */
    check("[.a, .b]", "{\"a\":\"\xef\xa3\xbfidem:2\",\"b\":1.50}",
          "[\"\xef\xa3\xbfidem:2\",1.50]");
    /* Computing with what a double holds is the program's business. */
    check(".a * 100", "{\"a\":10.5}", "1050");
    check(".a + 1", "{\"a\":41}", "42");
}

/* With a number that jq would round nothing is computed in silence. */
TEST(select, doesNotComputeWithWhatItWouldRound)
{
    refuse(".a + 1", "{\"a\":12345678901234567890}",
           "may compute with 12345678901234567890");
    refuse(".a + 0", "{\"a\":1e400}", "may compute with 1e400");
}

/* A keyless input is an error, not the key of all keyless inputs. */
TEST(select, wantsWhatItSelectsToBeThere)
{
    refuse(".id", "{}", "selects null: what it names is not there");
    refuse("[.a, .b]", "{\"c\":1}", "selects [null,null]");
    refuse("{a: .a}", "{\"c\":1}", "selects {\"a\":null}");
    refuse("empty", "{}", "selects nothing");
    refuse(".[]", "[]", "selects nothing");
    check("[.a, .b]", "{\"b\":1}", "[null,1]");
    options.allow_null = true;
    check(".id", "{}", "null");
    options.allow_null = false;
}

/* What goes wrong says how. */
TEST(select, saysWhatWasWrong)
{
    refuse(".a.b", "{\"a\":3}", "Cannot index number with");
    refuse(".[]", "[1,2]", "more than one value");
    refuse("error(\"no order\")", "{}", "the program fails: no order");
    refuse("error({a: 1})", "{}", "the program fails: {\"a\":1}");
    refuse("1, halt", "{}", "halts");
    refuse("input", "{}", "the program fails");
    refuse(".", "{\"a\":1,\"a\":2}", "two members");
    refuse(".", "{\"a\":", "a value is missing");
    refuse(".", "\"\\ud800\"", "half a surrogate pair");
}

/* What is no program is said by jq's own words. */
TEST(select, refusesWhatIsNoProgram)
{
    static const struct {
        const char *program;
        const char *word;
    } rows[] = {
        {".a +", "syntax error"},
        {"foo", "foo/0 is not defined"},
        {"$x", "x is not defined"},
        {".a | (1", "syntax error"},
        {"import \"x\" as x; .", "not a valid jq program"},
        {"include \"x\"; .", "not a valid jq program"},
    };
    struct idem_select *select;
    char *large;
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        int rc = idem_select_create(rows[i].program, NULL, &select, &why);

        if (rc != IDEM_EINVALID || strstr(why.text, rows[i].word) == NULL) {
            fail_with("%s: %d %s", rows[i].program, rc, why.text);
        }
    }
    large = calloc(1, 65 * 1024 + 1);
    memset(large, '.', 65 * 1024);
    assert_code(IDEM_EINVALID, idem_select_create(large, NULL, &select, &why));
    assert_why("at most 65536 bytes");
    free(large);
}

/* A program that does not end is stopped; what it left behind is gone. */
TEST(select, hasItsTime)
{
    options.timeout_ms = 100;
    refuse("def f: f; f", "{}", "longer than 100 ms");
    refuse("[range(1e9)] | length", "{}", "longer than 100 ms");
    options = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* A run that was waited for has left no process when it returns, whatever it said. */
TEST(select, leavesNoProcess)
{
    struct idem_select *select;
    struct idem_slice output;
    int i;

    assert_ok(idem_select_create(".a", &options, &select, &why));
    for (i = 0; i < 20; i++) {
        const char *json = i % 3 == 0 ? "{\"a\": 1}" : i % 3 == 1 ? "{}" : "[";

        assert_code(i % 3 == 0 ? 0 : IDEM_EINVALID,
                    idem_select_run(select, idem_str(json), &output, &why));
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
    }
    idem_select_destroy(select);
}

/* Nor does it take the memory of its caller. */
TEST(select, hasItsMemory)
{
    if (test_under("qemu")) {
        test_skip("qemu accepts a limit of memory and does not set it");
    }
    options.memory_max = 16 * M;
    options.timeout_ms = 20000;
    refuse("\"x\" * 100000000", "{}", "more than 16777216 bytes of memory");
    refuse("[range(1e9)] | length", "{}", "of memory, or crashes");
    options = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
}

/* Sizes have an end on both sides. */
TEST(select, hasItsSizes)
{
    options.input_max = 10;
    options.output_max = 5;
    check(".", "\"abc\"", "\"abc\"");
    refuse(".", "\"abcd\"", "more than 5 bytes");
    refuse("\"abc\" * 3", "0", "more than 5 bytes");
    refuse(".", "\"abcdefghi\"", "has 11 bytes, and at most 10");
    options = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
}

/* An option that is out of range is refused. */
TEST(select, checksItsOptions)
{
    struct idem_select *select;
    struct idem_select_options o = IDEM_SELECT_OPTIONS_INIT;

    o.timeout_ms = 0;
    assert_code(IDEM_EINVALID, idem_select_create(".", &o, &select, &why));
    o = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
    o.size--;
    assert_code(IDEM_EINVALID, idem_select_create(".", &o, &select, &why));
    o.size++;
    o.input_max = 17 * M;
    assert_code(IDEM_EINVALID, idem_select_create(".", &o, &select, &why));
    idem_select_destroy(NULL);
}

/* Without memory it fails cleanly. */
TEST(select, failsWithoutMemory)
{
    struct idem_select *select;
    struct idem_slice output;
    long n, failures = 0;
    bool failed = true;
    int rc;

    for (n = 0; failed; n++) {
        heap_fail(n, /* on= */ false);
        rc = idem_select_create(".a", NULL, &select, &why);
        if (rc == 0) {
            rc = idem_select_run(select, idem_str("{\"a\":[1.0,\"x\"]}"),
                                 &output, &why);
        } else {
            select = NULL;
        }
        failed = heap_fail_never();
        assert_code(failed ? IDEM_ENOMEM : IDEM_OK, rc);
        if (!failed) {
            assert_text(output, "[1.0,\"x\"]");
        }
        failures += failed;
        idem_select_destroy(select);
    }
    print_message("# %ld allocations failed\n", failures);
    assert_true(failures >= 4); /* The child has a heap of its own. */
}

/* ---- Without waiting ---- */

#define PATIENCE_MS 60000

static struct idem_selection *begin(struct idem_select *select,
                                    const char *json)
{
    struct idem_selection *selection;

    assert_ok(idem_select_start(select, idem_str(json), &selection, &why));
    return selection;
}

static void wait_for(struct idem_selection *selection)
{
    while (!idem_selection_ready(selection)) {
        struct pollfd p = {.fd = idem_selection_fd(selection),
                           .events = POLLIN};

        (void)poll(&p, 1, (int)idem_selection_left_ms(selection));
    }
}

static void expect(struct idem_selection *selection, const char *want)
{
    struct idem_slice output;

    wait_for(selection);
    assert_ok(idem_selection_output(selection, &output, &why));
    assert_text(output, want);
    idem_selection_destroy(selection);
}

static void expect_no_children(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* Many runs at once, each with its own answer; one that is slow holds up none. */
TEST(selection, goesOnMeanwhile)
{
    struct idem_selection *slow, *some[16];
    struct idem_select *select;
    struct idem_slice output;
    char json[32];
    int i;

    options.keep = 4;
    options.timeout_ms = PATIENCE_MS;
    assert_ok(idem_select_create("if . == 0 then def f: f; f else . end",
                                 &options, &select, &why));
    slow = begin(select, "0");
    for (i = 0; i < 16; i++) {
        (void)snprintf(json, sizeof(json), "%d", i + 1);
        some[i] = begin(select, json);
    }
    for (i = 15; i >= 0; i--) {
        (void)snprintf(json, sizeof(json), "%d", i + 1);
        expect(some[i], json);
    }
    assert_false(idem_selection_ready(slow));
    assert_code(IDEM_EINVALID, idem_selection_output(slow, &output, &why));
    assert_true(idem_selection_left_ms(slow) > 0);
    idem_selection_destroy(slow);
    idem_select_destroy(select);
    expect_no_children();
    options = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
}

/* A process that is kept serves the next texts, of any length and after any error;
 * one that was stopped is not kept. */
TEST(selection, keepsItsProcesses)
{
    struct idem_selection *selection;
    struct idem_select *select;
    struct idem_slice output;
    char *large = malloc(M);
    int i;

    memset(large, ' ', M - 1);
    large[0] = '7';
    large[M - 1] = '\0';
    options.keep = 1;
    assert_ok(idem_select_create("if . == 0 then def f: f; f else . end",
                                 &options, &select, &why));
    for (i = 0; i < 50; i++) {
        expect(begin(select, "\"a\""), "\"a\"");
        assert_int_equal(waitpid(-1, NULL, WNOHANG), 0);
        assert_code(IDEM_EINVALID,
                    idem_select_run(select, idem_str("{"), &output, &why));
    }
    expect(begin(select, large), "7");
    idem_select_destroy(select);
    expect_no_children();

    options.timeout_ms = 100;
    assert_ok(idem_select_create("if . == 0 then def f: f; f else . end",
                                 &options, &select, &why));
    selection = begin(select, "0");
    wait_for(selection);
    assert_true(idem_selection_cut_off(selection));
    assert_int_equal(idem_selection_left_ms(selection), 0);
    assert_code(IDEM_EINVALID, idem_selection_output(selection, &output, &why));
    assert_why("longer than 100 ms");
    idem_selection_destroy(selection);
    for (i = 0; i < 20; i++) { /* This machine may be as slow as that. */
        if (idem_select_run(select, idem_str("5"), &output, &why) == 0) {
            break;
        }
    }
    assert_true(i < 20);
    idem_select_destroy(select);
    expect_no_children();
    options = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
    free(large);
}

static void wait_for_all(int signo)
{
    int before = errno;

    (void)signo;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    errno = before;
}

/* As in nginx, somebody else waits for every child. */
TEST(selection, survivesAnotherWaiter)
{
    struct sigaction action = {.sa_handler = wait_for_all};
    struct sigaction before;
    struct idem_select *select;
    struct idem_slice output;
    size_t keep;
    int i;

    (void)sigaction(SIGCHLD, &action, &before);
    for (keep = 0; keep < 2; keep++) {
        options.keep = keep;
        options.timeout_ms = PATIENCE_MS;
        options.memory_max = 16 * M;
        assert_ok(idem_select_create(
            "if . == 0 then def f: f; f elif . == 1 then \"x\" * 500000000 "
            "else . end",
            &options, &select, &why));
        for (i = 0; i < 20; i++) {
            expect(begin(select, "7"), "7");
        }
        assert_code(IDEM_EINVALID,
                    idem_select_run(select, idem_str("1"), &output, &why));
        idem_selection_destroy(begin(select, "0"));
        expect(begin(select, "8"), "8");
        idem_select_destroy(select);
        expect_no_children();
    }
    (void)sigaction(SIGCHLD, &before, NULL);
    options = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
}

/* A server's sockets are not held open by a run. */
TEST(selection, holdsNoDescriptor)
{
    struct idem_selection *selection;
    struct idem_select *select;
    struct pollfd p = {.events = POLLIN};
    int fds[2], far;

    assert_return_code(pipe(fds), 0);
    far = dup2(fds[1], 200);
    assert_int_equal(far, 200);
    options.timeout_ms = PATIENCE_MS;
    assert_ok(idem_select_create("def f: f; f", &options, &select, &why));
    selection = begin(select, "0");
    (void)close(fds[1]);
    (void)close(far);
    p.fd = fds[0];
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    assert_true((p.revents & POLLHUP) != 0);
    assert_false(idem_selection_ready(selection));
    (void)close(fds[0]);
    idem_selection_destroy(selection);
    idem_select_destroy(select);
    expect_no_children();
    options = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
}

/* The one process that this one has. */
static pid_t only_child(void)
{
    char path[64];
    FILE *f;
    int pid = 0;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    f = fopen(path, "r");
    if (f != NULL) {
        if (fscanf(f, "%d", &pid) != 1) {
            pid = 0;
        }
        (void)fclose(f);
    }
    return pid;
}

/* A process that somebody kills costs at most the answer it was about to give. */
TEST(selection, survivesAKill)
{
    struct idem_selection *selection;
    struct idem_select *select;
    siginfo_t info;
    pid_t pid;

    options.keep = 1;
    options.timeout_ms = PATIENCE_MS;
    assert_ok(idem_select_create("if . == 0 then def f: f; f else . end",
                                 &options, &select, &why));
    expect(begin(select, "1"), "1");
    pid = only_child();
    if (pid == 0) {
        print_message("# no list of children in /proc\n");
        idem_select_destroy(select);
        skip();
    }
    (void)kill(pid, SIGKILL);
    assert_return_code(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    expect(begin(select, "2"), "2");
    assert_int_not_equal(only_child(), pid);

    selection = begin(select, "0");
    (void)kill(only_child(), SIGKILL);
    wait_for(selection);
    assert_true(idem_selection_cut_off(selection));
    idem_selection_destroy(selection);
    expect(begin(select, "3"), "3");
    idem_select_destroy(select);
    expect_no_children();
    options = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
}

struct killer {
    int left;   /* To be killed. */
    int killed; /* So many were. */
    bool over;
};

/* Kills a run each time that one is there; what is started after the last kill finds
 * the variable. */
static void *kill_runs(void *arg)
{
    struct killer *killer = arg;

    while (killer->killed < killer->left &&
           !__atomic_load_n(&killer->over, __ATOMIC_ACQUIRE)) {
        pid_t pid = only_child();

        if (pid == 0) {
            (void)usleep(1000);
            continue;
        }
        if (killer->killed + 1 == killer->left) {
            (void)setenv("TEST_LAST", "yes", 1);
        }
        (void)kill(pid, SIGKILL);
        killer->killed++;
        while (only_child() == pid &&
               !__atomic_load_n(&killer->over, __ATOMIC_ACQUIRE)) {
            (void)usleep(1000);
        }
    }
    return NULL;
}

/* The caller learns nothing of one process that is killed under its run; of two it
 * does, and that this says nothing of the text. */
TEST(select, runsAgainWhatWasKilled)
{
    struct idem_select *select;
    struct idem_slice output;
    struct killer killer;
    pthread_t thread;
    int kills, rc;

    options.timeout_ms = PATIENCE_MS;
    assert_ok(idem_select_create(
        "if env.TEST_LAST == null then def f: f; f else . end", &options,
        &select, &why));
    for (kills = 1; kills <= 2; kills++) {
        (void)unsetenv("TEST_LAST");
        killer = (struct killer){.left = kills};
        assert_int_equal(pthread_create(&thread, NULL, kill_runs, &killer), 0);
        rc = idem_select_run(select, idem_str("7"), &output, &why);
        __atomic_store_n(&killer.over, true, __ATOMIC_RELEASE);
        (void)pthread_join(thread, NULL);
        assert_int_equal(killer.killed, kills);
        assert_int_equal(idem_select_cut_off(select), kills == 2);
        if (kills == 1) {
            assert_int_equal(rc, 0);
            assert_text(output, "7");
        } else {
            assert_code(IDEM_EINVALID, rc);
            assert_why("was killed");
        }
        expect_no_children();
    }
    (void)unsetenv("TEST_LAST");
    idem_select_destroy(select);
    options = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
}

/* After a fork each of the two has processes of its own. */
TEST(selection, isOfOneProcess)
{
    struct idem_selection *selection;
    struct idem_select *select;
    struct idem_slice output;
    int status;
    pid_t pid;

    options.keep = 2;
    assert_ok(idem_select_create(".", &options, &select, &why));
    expect(begin(select, "1"), "1");
    selection = begin(select, "2");
    pid = fork();
    if (pid == 0) {
        bool good =
            idem_selection_ready(selection) &&
            idem_selection_output(selection, &output, &why) == IDEM_EINVALID;

        idem_selection_destroy(selection);
        good = good &&
               idem_select_run(select, idem_str("3"), &output, &why) == 0 &&
               output.len == 1 && *(const char *)output.base == '3';
        idem_select_destroy(select);
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    expect(selection, "2");
    expect(begin(select, "4"), "4");
    idem_select_destroy(select);
    expect_no_children();
    options = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
}

/* ---- Requests ---- */

static void check_request(struct idem_select *select,
                          const struct idem_select_request *request,
                          const char *want)
{
    struct idem_selection *selection;

    assert_ok(idem_select_start_request(select, request, &selection, &why));
    expect(selection, want);
}

/* A program sees what the header draws; a process that is kept sees the same. */
TEST(selection, seesARequest)
{
    struct idem_select_header headers[] = {
        {idem_str("Host"), idem_str("h")},
        {idem_str("X-Two"), idem_str("b")},
        {idem_str("x-two"), idem_str("a\"\\\t")},
        {idem_str("X-Latin"), idem_str("\xe9")},
    };
    struct idem_select_request request = {
        idem_str("POST"), idem_str("/o%20r?b=1&a=%C3%A9+x&b=2%&c&&d=%ff"),
        headers, COUNT(headers),
        idem_str(" {\"n\":12345678901234567890,\"n2\":1.0}")};
    static const struct {
        const char *body;
        const char *want;
    } bodies[] = {
        {"", "\"\""},
        {"a=1&b=2", "\"a=1&b=2\""},
        {"42", "\"42\""},
        {"[1]", "[1]"},
        {"[1,", "\"[1,\""},
        {"{\"a\":1,\"a\":2}", "\"{\\\"a\\\":1,\\\"a\\\":2}\""},
        {"[\"\\ud800\"]", "\"[\\\"\\\\ud800\\\"]\""},
        {"\xff", "null"},
    };
    struct idem_select *select, *body;
    size_t i;
    int round;

    options.keep = 1;
    options.allow_null = true;
    assert_ok(idem_select_create(".", &options, &select, &why));
    assert_ok(idem_select_create(".body", &options, &body, &why));
    for (round = 0; round < 2; round++) {
        check_request(
            select, &request,
            "{\"method\":\"POST\",\"path\":\"/o%20r\",\"query\":{\"a\":\"\xc3\xa9 "
            "x\",\"b\":[\"1\",\"2%\"],\"c\":\"\",\"d\":null},\"headers\":{"
            "\"host\":\"h\",\"x-latin\":null,\"x-two\":[\"b\",\"a\\\"\\\\\\t\"]"
            "},\"body\":{\"n\":12345678901234567890,\"n2\":1.0}}");
    }
    for (i = 0; i < COUNT(bodies); i++) {
        request.body = idem_str(bodies[i].body);
        check_request(body, &request, bodies[i].want);
    }
    request.body = idem_bytes("[\0]", 3);
    check_request(body, &request, "\"[\\u0000]\"");
    idem_select_destroy(select);
    idem_select_destroy(body);
    expect_no_children();
    options = (struct idem_select_options)IDEM_SELECT_OPTIONS_INIT;
}

/* A name cannot be null; what is too long is refused before there is a process. */
TEST(selection, refusesARequest)
{
    struct idem_select_request request = {idem_str("POST"), idem_str("/?%ff=1"),
                                          NULL, 0, idem_str("")};
    struct idem_selection *selection;
    struct idem_select *select;
    struct idem_slice output;
    char *large = calloc(1, 16 * M);

    assert_ok(idem_select_create(".path", &options, &select, &why));
    assert_ok(idem_select_start_request(select, &request, &selection, &why));
    wait_for(selection);
    assert_code(IDEM_EINVALID, idem_selection_output(selection, &output, &why));
    assert_why("the name of an argument is not UTF-8");
    assert_false(idem_selection_cut_off(selection));
    idem_selection_destroy(selection);

    request.body = idem_bytes(large, 16 * M);
    assert_code(IDEM_EINVALID,
                idem_select_start_request(select, &request, &selection, &why));
    assert_why("more than 16777216 bytes");
    idem_select_destroy(select);
    free(large);
}
