/* Metrics in both forms, and meters that processes share. */
#include "temp.h"
#include "test.h"

#include <idem/memory.h>
#include <idem/metrics.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct idem_metrics full(void)
{
    struct idem_metrics m = IDEM_METRICS_INIT;

    m.store = "sqlite:/a \"b\"\\c\n\xff";
    m.up = true;
    m.now_ms = 1700000000123;
    m.has_counters = true;
    m.counters.started = UINT64_MAX;
    m.has_calls = true;
    m.errors[-IDEM_EUNAVAILABLE] = 7;
    m.buckets[IDEM_CALL_BEGIN][0] = 2;
    m.buckets[IDEM_CALL_BEGIN][IDEM_METRICS_BUCKETS - 1] = 3;
    m.sum_us[IDEM_CALL_BEGIN] = 2500000;
    m.overdue = 4;
    m.oldest_ms = 61500;
    m.oldest_retry_ms = 1250;
    m.jobs[m.jobs_len++] = (struct idem_metrics_job){"a\"@*", 1500};
    m.jobs[m.jobs_len++] = (struct idem_metrics_job){"b@*", 0};
    return m;
}

static char text[IDEM_METRICS_TEXT_MAX];

static void assert_has(const char *format, ...)
{
    char line[256];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (strstr(text, line) == NULL) {
        fail_with("there is no \"%s\" in:\n%s", line, text);
    }
}

/* A label has nothing of how its store is reached. */
TEST(prometheus, namesStoresBriefly)
{
    static const struct {
        const char *url;
        const char *label;
    } rows[] = {
        {"sqlite:/var/idem.db?group=ops&network=yes", "sqlite:/var/idem.db"},
        {"dynamodb://idem?region=eu-central-1&endpoint=https%3A%2F%2Fu%3Ap%40h"
         "&layout=lock-token",
         "dynamodb://idem?region=eu-central-1"},
        {"dynamodb://idem?endpoint=http%3A%2F%2Fh&region=x",
         "dynamodb://idem?region=x"},
        {"dynamodb://idem?endpoint=http%3A%2F%2Fh&noregion=x",
         "dynamodb://idem"},
        {"sqlite:/var/idem.db?", "sqlite:/var/idem.db"},
    };
    struct idem_metrics m = full();
    size_t len;

    EACH(row, rows) {
        m.store = row->url;
        assert_ok(idem_metrics_prometheus(&m, text, sizeof(text), &len));
        assert_has("\nidem_started_total{store=\"%s\"} ", row->label);
        assert_has("\nidem_store_errors_total{store=\"%s\",kind=\"",
                   row->label);
        assert_null(strstr(text, "endpoint"));
        assert_ok(idem_metrics_emf(&m, NULL, "Idem", text, sizeof(text), &len));
        assert_has("\"store\":\"%s\",", row->label);
    }
}

/* Everything is in the text, the label escaped, buckets added up. */
TEST(prometheus, writesEverything)
{
    struct idem_metrics m = full();
    const char *label = "{store=\"sqlite:/a \\\"b\\\"\\\\c??\"";
    size_t len;

    assert_ok(idem_metrics_prometheus(&m, text, sizeof(text), &len));
    assert_int_equal(len, strlen(text));
    assert_has("\nidem_started_total%s} 18446744073709551615\n", label);
    assert_has("idem_store_errors_total%s,kind=\"unavailable\"} 7\n", label);
    assert_has(
        "idem_store_call_seconds_bucket%s,call=\"begin\",le=\"+Inf\"} 5\n",
        label);
    assert_has("idem_store_call_seconds_sum%s,call=\"begin\"} 2.5\n", label);
    assert_has("idem_oldest_in_progress_seconds%s} 61.5\n", label);
    assert_has("idem_oldest_retry_seconds%s} 1.25\n", label);
    assert_has("idem_last_success_seconds%s,key=\"a\\\"@*\"} 1.5\n"
               "idem_last_success_seconds%s,key=\"b@*\"} 0\n",
               label, label);
    assert_null(strstr(text, "idem_log_"));
    m.has_log = true;
    m.log_len = 12345678901;
    m.log_held = true;
    assert_ok(idem_metrics_prometheus(&m, text, sizeof(text), &len));
    assert_has("\nidem_log_bytes%s} 12345678901\n", label);
    assert_has("\nidem_log_held%s} 1\n", label);
}

/* Both refuse every buffer that is too short, and write nothing behind it. */
TEST(metrics, fitOrAreRefused)
{
    struct idem_metrics m = full();
    size_t needed[2];
    size_t len = 99;
    size_t cap;
    int form;

    assert_ok(idem_metrics_prometheus(&m, text, sizeof(text), &needed[0]));
    assert_ok(
        idem_metrics_emf(&m, NULL, "idem", text, sizeof(text), &needed[1]));
    for (form = 0; form < 2; form++) {
        for (cap = 0; cap <= needed[form] + 1; cap++) {
            int want = cap > needed[form] ? IDEM_OK : IDEM_EINVALID;

            memset(text, '~', sizeof(text));
            assert_code(want, form == 0
                                  ? idem_metrics_prometheus(&m, text, cap, &len)
                                  : idem_metrics_emf(&m, NULL, "idem", text,
                                                     cap, &len));
            assert_int_equal(text[cap], '~');
        }
        assert_int_equal(len, needed[form]);
    }
    m.size = 1;
    assert_code(IDEM_EINVALID,
                idem_metrics_prometheus(&m, text, sizeof(text), &len));
    assert_code(IDEM_EINVALID,
                idem_metrics_emf(&m, NULL, "idem", text, sizeof(text), &len));
}

/* What is counted is given as what was added; what is on record as it is. */
TEST(emf, givesDifferences)
{
    struct idem_metrics before = IDEM_METRICS_INIT;
    struct idem_metrics m = IDEM_METRICS_INIT;
    size_t len;

    before.counters.started = 10;
    before.counters.completed = 5;
    m.up = true;
    m.has_counters = true;
    m.counters.started = 13;
    m.counters.completed = 2; /* Another store: it began anew. */
    m.in_progress = 8;
    assert_ok(idem_metrics_emf(&m, &before, "idem", text, sizeof(text), &len));
    assert_has(",\"started\":3,");
    assert_has(",\"completed\":2,");
    assert_has(",\"inProgress\":8,");
    assert_null(strstr(text, "store"));
}

/* ---- Meters ---- */

static void work(struct idem_meter *meter, unsigned times)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt;
    struct idem_store *store;
    unsigned i;

    options.observe = idem_meter_observe;
    options.observe_ctx = meter;
    assert_ok(idem_open("memory:", &options, &store, &why));
    request.key = idem_str("k");
    request.on_expired_lease = IDEM_HOLD;
    for (i = 0; i < times; i++) {
        assert_ok(idem_begin(store, &request, &attempt, &why));
        if (attempt->verdict == IDEM_STARTED) {
            assert_ok(idem_complete(attempt, NULL, &why));
        }
        idem_attempt_destroy(attempt);
    }
    idem_close(store);
}

/* Each answer is counted once, each call in one bucket. */
TEST(meter, countsWhatIsAnswered)
{
    struct idem_metrics m = IDEM_METRICS_INIT;
    struct idem_meter *meter;
    uint64_t calls = 0;
    size_t i;

    assert_ok(idem_meter_open(NULL, 0, &meter, &why));
    work(meter, 5);
    idem_meter_read(meter, &m);
    assert_true(m.has_counters && m.has_calls);
    assert_int_equal(m.counters.started, 1);
    assert_int_equal(m.counters.completed, 1);
    assert_int_equal(m.counters.replayed, 4);
    for (i = 0; i < IDEM_METRICS_BUCKETS; i++) {
        calls += m.buckets[IDEM_CALL_BEGIN][i];
    }
    assert_int_equal(calls, 5);
    idem_meter_close(meter);
    idem_meter_close(NULL);
}

enum {
    PROCESSES = 8,
    TIMES = 200
};

/* Processes that come and go, all at once, and are not there any more when the
 * file is read: nothing is lost. */
TEST(meter, isSharedByProcesses)
{
    struct idem_metrics m = IDEM_METRICS_INIT;
    struct idem_meter *meter;
    const char *path = temp_path("meter");
    struct stat st;
    int i;

    for (i = 0; i < PROCESSES; i++) {
        if (fork() == 0) {
            if (idem_meter_open(path, IDEM_METER_CREATE, &meter, &why) != 0) {
                _exit(1);
            }
            work(meter, TIMES);
            idem_meter_close(meter);
            _exit(0);
        }
    }
    for (i = 0; i < PROCESSES; i++) {
        int how;

        (void)wait(&how);
        assert_int_equal(how, 0);
    }
    assert_ok(idem_meter_open(path, IDEM_METER_READONLY, &meter, &why));
    idem_meter_read(meter, &m);
    idem_meter_close(meter);
    assert_int_equal(m.counters.started, PROCESSES);
    assert_int_equal(m.counters.replayed, PROCESSES * (TIMES - 1));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_size, 4096);
}
