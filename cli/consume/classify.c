/* From what `idem run` said to what becomes of the message. Pure. */
#include "consume/consume.h"
#include "text/exit_status.h"

#define AWAY_MS 1000
#define AWAY_CAP_MS 30000
#define DEATHS_MAX 10 /* Then the queue may give it to somebody else. */

static bool is(const char *text, const char *word)
{
    return strcmp(text, word) == 0;
}

/* Twice as long each time. */
static int64_t pause_ms(uint64_t given)
{
    int64_t ms = AWAY_MS;

    for (; given > 1 && ms < AWAY_CAP_MS; given--) {
        ms *= 2;
    }
    return ms < AWAY_CAP_MS ? ms : AWAY_CAP_MS;
}

static struct consume_verdict verdict_of(enum consume_fate fate,
                                         const char *word, int64_t ms)
{
    struct consume_verdict verdict = {.fate = fate, .word = word, .ms = ms};

    return verdict;
}

/* The process that ran it died: the lease of its attempt, if it began one, says
 * when it is somebody else's turn. */
static struct consume_verdict classify_death(uint64_t given)
{
    return verdict_of(given < DEATHS_MAX ? CONSUME_KEEP : CONSUME_LEAVE, "died",
                      pause_ms(given));
}

/* The status on record now. */
static struct consume_verdict classify_record(
    const struct consume_status_report *report)
{
    if (is(report->status, "completed")) {
        return verdict_of(CONSUME_DONE, report->executed ? "done" : "replayed",
                          0);
    }
    return verdict_of(CONSUME_LEAVE,
                      is(report->status, "unknown") ? "unknown" : "failed", 0);
}

/* Nothing ran, and no record is in the way. */
static struct consume_verdict classify_refusal(
    const struct consume_status_report *report, uint64_t given)
{
    switch (report->idem_status) {
    case CLI_CANNOT_EXECUTE:
    case CLI_NOT_FOUND:
        return verdict_of(CONSUME_STOP, "cannot execute", 0);
    case CLI_USAGE:
    case CLI_CORRUPT:
        return verdict_of(CONSUME_LEAVE, "refused", 0);
    default:
        return verdict_of(CONSUME_AWAY, "store away", pause_ms(given));
    }
}

struct consume_verdict consume_classify(
    const struct consume_status_report *report, uint64_t given)
{
    if (!report->told) {
        return classify_death(given);
    }
    if (report->executed && !report->recorded) {
        /* If the store is away, the next run for this key tells it first what
         * the journal has. Else the key was lost to somebody. */
        return verdict_of(report->journaled ? CONSUME_AWAY : CONSUME_KEEP,
                          "not recorded", pause_ms(given));
    }
    /* Damaged output does not make it doubtful that the work was done. */
    if (report->executed || is(report->verdict, "REPLAY") ||
        is(report->verdict, "FAILED") || is(report->verdict, "UNKNOWN")) {
        return classify_record(report);
    }
    if (is(report->verdict, "BUSY")) {
        return verdict_of(CONSUME_KEEP, "busy",
                          report->lease_left_ms < 0 ? AWAY_MS
                                                    : report->lease_left_ms);
    }
    if (is(report->verdict, "MISMATCH")) {
        return verdict_of(CONSUME_LEAVE, "mismatch", 0);
    }
    return classify_refusal(report, given);
}
