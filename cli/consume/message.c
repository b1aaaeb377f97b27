/* A message: its identity, and how its attempt ended. */
#include "consume/consume.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <idem/http.h>
#include <idem/key.h>

/* ---- Its identity ---- */

/* Adds to @error which selector failed. */
static int refuse(const char *option, const char *text,
                  struct idem_error *error)
{
    struct idem_error why = *error;
    char shown[96];

    (void)snprintf(error->text, sizeof(error->text), "--%s %s: %.*s", option,
                   cli_escape(idem_str(text), shown, sizeof(shown)),
                   (int)sizeof(why.text) / 2, why.text);
    return error->code;
}

/* Makes the id that the queue gave the message its key. */
static int take_id(struct idem_slice id, char key[IDEM_KEY_MAX + 1],
                   struct idem_error *error)
{
    if (id.len == 0 || id.len > IDEM_KEY_MAX ||
        memchr(id.base, '\0', id.len) != NULL) {
        (void)snprintf(
            error->text, sizeof(error->text),
            "its id is empty, longer than %d bytes, or contains a NUL byte",
            IDEM_KEY_MAX);
        return IDEM_EINVALID;
    }
    memcpy(key, id.base, id.len);
    key[id.len] = '\0';
    return 0;
}

static int make_key(const struct consume *consume,
                    const struct idem_message *message,
                    char key[IDEM_KEY_MAX + 1], struct idem_error *error)
{
    struct idem_key_text made;
    int rc;

    if (consume->key == NULL) {
        return take_id(message->id, key, error);
    }
    rc = idem_selector_run(consume->key, message->body, /* flags= */ 0, error);
    if (rc == 0) {
        rc = idem_key_of(consume->key, &made, error);
    }
    if (rc != 0) {
        return refuse("key-from", consume->options->key_from, error);
    }
    memcpy(key, made.text, made.len + 1);
    return 0;
}

/* By its fingerprint, another message with the same key is not taken for a duplicate. */
static int make_fingerprint(const struct consume *consume,
                            const struct idem_message *message,
                            char fingerprint[CONSUME_FINGERPRINT_MAX],
                            struct idem_error *error)
{
    uint8_t digest[IDEM_FINGERPRINT_LEN];
    const struct idem_slice secret = idem_str(NULL);
    struct idem_slice values;
    int rc = 0;

    if (consume->options->fingerprint == CONSUME_NO_FINGERPRINT) {
        (void)strcpy(fingerprint, "none");
        return 0;
    }
    if (consume->fingerprint == NULL) {
        rc = idem_http_fingerprint(/* parts= */ NULL, 0,
                                   /* content_type= */ idem_str(NULL),
                                   message->body, secret, digest);
    } else {
        rc = idem_selector_run(consume->fingerprint, message->body,
                               /* flags= */ 0, error);
        if (rc == 0) {
            rc = idem_selector_values(consume->fingerprint, &values, error);
        }
        if (rc != 0) {
            return refuse("fingerprint-from",
                          consume->options->fingerprint_from, error);
        }
        rc = idem_http_fingerprint_selected(/* parts= */ NULL, 0, values,
                                            secret, digest);
    }
    if (rc == 0) {
        cli_hex(idem_bytes(digest, sizeof(digest)), fingerprint);
    }
    return rc;
}

int consume_identify(const struct consume *consume,
                     const struct idem_message *message,
                     struct consume_identity *ret_identity,
                     struct idem_error *ret_error)
{
    int rc = make_key(consume, message, ret_identity->key, ret_error);

    return rc != 0 ? rc
                   : make_fingerprint(consume, message,
                                      ret_identity->fingerprint, ret_error);
}

/* ---- Its end ---- */

#define AWAY_MS 1000
#define AWAY_CAP_MS 30000
#define DEATHS_MAX 10 /* Then the queue may give it to another consumer. */

static bool is(const char *text, const char *word)
{
    return strcmp(text, word) == 0;
}

/* The pause doubles each time. */
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

/* The `idem run` of the message died. If it had begun an attempt, the lease of that
 * decides when another may begin. */
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
        /* If the journal has the outcome, the next run for this key records it first.
         * If not, another attempt has taken the key. */
        return verdict_of(report->journaled ? CONSUME_AWAY : CONSUME_KEEP,
                          "not recorded", pause_ms(given));
    }
    /* Even if the output is damaged, the work was done. */
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
