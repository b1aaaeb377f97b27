/* Tests of what becomes of a message. */
#include "consume/consume.h"
#include "text/exit_status.h"

#include "test.h"

#include <unistd.h>

/* Only what is on record as completed is deleted; only what failed on record, or
 * is no fault of the store's, is left; all else is held. ROW(14) ROW(64) */
TEST(check, deletesOnlyWhatIsOnRecord)
{
    static const struct {
        const char *report; /* NULL: none. */
        enum consume_fate fate;
        const char *word;
    } rows[] = {
        {"'verdict':'STARTED','executed':true,'recorded':true,"
         "'status':'completed','idem_status':0",
         CONSUME_DONE, "done"},
        {"'verdict':'STARTED','executed':true,'recorded':true,"
         "'status':'completed','idem_status':3",
         CONSUME_DONE, "done"},
        {"'verdict':'STARTED','executed':true,'recorded':false,"
         "'status':'in_progress','idem_status':80",
         CONSUME_KEEP, "not recorded"},
        {"'verdict':'STARTED','executed':true,'recorded':false,"
         "'status':'completed','journal':'/x','idem_status':80",
         CONSUME_AWAY, "not recorded"},
        {"'verdict':'STARTED','executed':true,'recorded':true,"
         "'status':'released','idem_status':1",
         CONSUME_LEAVE, "failed"},
        {"'verdict':'STARTED','executed':true,'recorded':true,"
         "'status':'retry','idem_status':1",
         CONSUME_LEAVE, "failed"},
        {"'verdict':'STARTED','executed':true,'recorded':true,"
         "'status':'failed','idem_status':1",
         CONSUME_LEAVE, "failed"},
        {"'verdict':'STARTED','executed':true,'recorded':true,"
         "'status':'in_progress','idem_status':137",
         CONSUME_LEAVE, "failed"},
        {"'verdict':'STARTED','executed':true,'recorded':true,"
         "'status':'unknown','idem_status':137",
         CONSUME_LEAVE, "unknown"},
        {"'verdict':'REPLAY','executed':false,'recorded':false,"
         "'status':'completed','idem_status':0",
         CONSUME_DONE, "replayed"},
        {"'verdict':'REPLAY','executed':false,'status':'completed',"
         "'idem_status':74",
         CONSUME_DONE, "replayed"},
        {"'verdict':'FAILED','executed':false,'status':'failed',"
         "'idem_status':79",
         CONSUME_LEAVE, "failed"},
        {"'verdict':'UNKNOWN','executed':false,'status':'unknown',"
         "'idem_status':76",
         CONSUME_LEAVE, "unknown"},
        {"'verdict':'MISMATCH','executed':false,'status':'completed',"
         "'idem_status':65",
         CONSUME_LEAVE, "mismatch"},
        {"'verdict':'BUSY','executed':false,'status':'in_progress',"
         "'lease_left_ms':700,'idem_status':75",
         CONSUME_KEEP, "busy"},
        {"'executed':false,'idem_status':69", CONSUME_AWAY, "store away"},
        {"'executed':false,'idem_status':73", CONSUME_AWAY, "store away"},
        {"'executed':false,'idem_status':77", CONSUME_AWAY, "store away"},
        {"'executed':false,'idem_status':78", CONSUME_AWAY, "store away"},
        {"'executed':false,'idem_status':74", CONSUME_LEAVE, "refused"},
        {"'executed':false,'idem_status':64", CONSUME_LEAVE, "refused"},
        {"'verdict':'STARTED','executed':false,'status':'in_progress',"
         "'idem_status':127",
         CONSUME_STOP, "cannot execute"},
        {"'verdict':'STARTED','executed':false,'status':'in_progress',"
         "'idem_status':69",
         CONSUME_AWAY, "store away"},
        {"'verdict':'REPLAY','status':'completed'", CONSUME_KEEP, "died"},
        {NULL, CONSUME_KEEP, "died"},
    };

    EACH(row, rows) {
        struct json_object *line = NULL;
        struct consume_status_report report;
        struct consume_verdict got;
        char text[512] = "";
        char *p;

        if (row->report != NULL) {
            (void)snprintf(text, sizeof(text), "{%s}", row->report);
            for (p = text; *p != '\0'; p++) {
                *p = *p == '\'' ? '"' : *p;
            }
            line = json_tokener_parse(text);
            assert_non_null(line);
        }
        print_message("# %s\n", text);
        consume_status_report_read(line, &report);
        got = consume_classify(&report, /* given= */ 1);
        assert_int_equal(row->fate, got.fate);
        assert_string_equal(row->word, got.word);
        (void)json_object_put(line);
    }
}

/* A duplicate waits for the lease, whatever that is; who finds no store waits
 * longer each time. */
TEST(check, saysHowLongToWait)
{
    struct consume_status_report busy = {.told = true,
                                         .idem_status = CLI_BUSY,
                                         .verdict = "BUSY",
                                         .status = "in_progress",
                                         .lease_left_ms = 41000};
    struct consume_status_report away = {.told = true,
                                         .idem_status = CLI_UNAVAILABLE,
                                         .verdict = "",
                                         .status = ""};
    struct consume_status_report none = {.told = false};

    assert_int_equal(41000, consume_classify(&busy, 1).ms);
    busy.lease_left_ms = IDEM_NEVER;
    assert_true(consume_classify(&busy, 1).ms == IDEM_NEVER);
    assert_int_equal(1000, consume_classify(&away, 1).ms);
    assert_int_equal(2000, consume_classify(&away, 2).ms);
    assert_int_equal(30000, consume_classify(&away, 50).ms);
    assert_int_equal(CONSUME_KEEP, consume_classify(&none, 9).fate);
    assert_int_equal(CONSUME_LEAVE, consume_classify(&none, 10).fate);
}

/* A report counts only with its newline, and only as an object. */
TEST(report, countsOnlyWhenWhole)
{
    static const struct {
        const char *text;
        bool counts;
    } rows[] = {
        {"{\"idem_status\":0}\n", true},
        {"{\"idem_status\":0}", false},
        {"{\"idem_status\":0\n", false},
        {"[]\n", false},
        {"", false},
    };

    EACH(row, rows) {
        FILE *f = tmpfile();
        struct json_object *line;

        assert_non_null(f);
        assert_true(fputs(row->text, f) >= 0);
        assert_int_equal(0, fflush(f));
        line = consume_status_report_line(fileno(f));
        assert_int_equal(row->counts, line != NULL);
        (void)json_object_put(line);
        (void)fclose(f);
    }
}
