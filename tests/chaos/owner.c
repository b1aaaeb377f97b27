/* Claims keys, works, and says how it went. */
#include "owner.h"

#include "ledger.h"
#include "product.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Everybody turns to new keys, and to new ones of those that expire; and
     * back, for so long, to see what has become of old ones. */
    SHORT_EVERY_MS = 8000,
    BACK_MS = 10000,
    LONG_MS = 3600 * 1000,
    TRIES = 3,
    LEN_MAX = 40000,
};

/* What an owner does about its attempt. */
enum style {
    STYLE_COMPLETE,
    STYLE_RENEW,   /* ... before the effect. */
    STYLE_TWICE,   /* ... again, and then with another result. */
    STYLE_LATE,    /* ... when its lease is over. */
    STYLE_RELEASE, /* Before the effect: nothing has happened. */
    STYLE_EXPIRE,  /* After the effect: another one takes over. */
    STYLE_RETRY,   /* Likewise, and says so. */
    STYLE_FAIL,
    STYLE_UNKNOWN,
    STYLE_FORGET, /* Not a word more. */
};

static unsigned below(struct owner *o, unsigned n)
{
    return rng_below(&o->caller.rng, n);
}

static void note(const struct owner *o, const char *what, const char *key,
                 uint64_t fence, const char *id)
{
    ledger_note(/* durable= */ false, "%s %s %u %" PRIu64 " %s", what, key,
                o->caller.writer.who, fence, id);
}

/* ---- Outcomes ---- */

/* How long a result is: inside the item, apart from it, or in several parts. */
static size_t choose_len(struct owner *o)
{
    unsigned how = below(o, 20);

    return how == 0 ? below(o, LEN_MAX) : how < 3 ? below(o, 4000) : 90;
}

struct product {
    char id[PRODUCT_ID];
    char bytes[LEN_MAX + 256];
    struct idem_outcome outcome;
};

static void make_product(struct owner *o, uint64_t fence,
                         enum idem_status status, struct product *product)
{
    size_t len;

    memset(&product->outcome, 0, sizeof(product->outcome));
    product->outcome.status = status;
    product_id(fence, product->id);
    len = product_make(product->id, choose_len(o), product->bytes,
                       sizeof(product->bytes));
    if (status == IDEM_STATUS_COMPLETED || status == IDEM_STATUS_FAILED) {
        product->outcome.result.bytes = idem_bytes(product->bytes, len);
    }
    if (status != IDEM_STATUS_COMPLETED) {
        product->outcome.text = idem_str("so it is");
    }
}

/* Tells the store until it answers; then it is up to the journal. */
static int tell_surely(struct owner *o, const struct caller_held *held,
                       const struct idem_outcome *outcome)
{
    /* Whoever replays the entry is one more caller, whose answer is not seen. */
    struct call_id replay = write_end(&o->caller.writer, held->key, held->id,
                                      held->attempt->fence, outcome);
    struct idem_journal_entry *entry;
    int rc = idem_journal_put(o->journal, o->caller.store, held->attempt,
                              outcome, &entry, NULL);
    unsigned n;

    if (rc != 0) {
        abort();
    }
    rc = IDEM_EUNKNOWN;
    for (n = 0; n < TRIES && idem_error_kind(rc) == IDEM_KIND_RETRY; n++) {
        rc = caller_end(&o->caller, held, outcome);
    }
    if (rc == 0 || rc == IDEM_ELOST) {
        idem_journal_remove(entry);
        write_answer(&o->caller.writer, replay, rc, NULL, NULL);
    } else {
        idem_journal_leave(entry);
    }
    return rc;
}

static void complete(struct owner *o, const struct caller_held *held,
                     bool twice)
{
    uint64_t fence = held->attempt->fence;
    int64_t end_ms;
    struct product *product = malloc(2 * sizeof(*product));
    int rc;

    if (product == NULL) {
        abort();
    }
    make_product(o, fence, IDEM_STATUS_COMPLETED, product);
    end_ms = caller_now_ms(); /* Before the lease is looked at. */
    end_ms += idem_attempt_lease_left_ms(held->attempt);
    note(o, "C", held->key, fence, "");
    rc = tell_surely(o, held, &product->outcome);
    if (rc == 0) {
        note(o, "A", held->key, fence, product->id);
    } else if (rc == IDEM_ELOST) {
        note(o, caller_now_ms() < end_ms ? "V" : "T", held->key, fence, "");
    } else if (o->naive) {
        note(o, "E", held->key, fence, "");
    }
    if (rc == 0 && twice) {
        make_product(o, fence, IDEM_STATUS_COMPLETED, product + 1);
        (void)caller_end(&o->caller, held, &product->outcome);
        if (caller_end(&o->caller, held, &product[1].outcome) == 0) {
            note(o, "W", held->key, fence, product[1].id);
        }
    }
    free(product);
}

static void end_as(struct owner *o, const struct caller_held *held,
                   enum idem_status status)
{
    struct product *product = malloc(sizeof(*product));

    if (product == NULL) {
        abort();
    }
    make_product(o, held->attempt->fence, status, product);
    if (caller_end(&o->caller, held, &product->outcome) == 0 &&
        status == IDEM_STATUS_RELEASED) {
        note(o, "L", held->key, held->attempt->fence, "");
    }
    free(product);
}

/* ---- Work ---- */

static void retry(struct owner *o, const struct caller_held *held)
{
    end_as(o, held, IDEM_STATUS_RETRY);
    note(o, "Y", held->key, held->attempt->fence, "");
}

static enum style choose_style(struct owner *o, const char *key)
{
    unsigned how = below(o, 100);

    if (how < 56) {
        return STYLE_COMPLETE;
    }
    if (how < 70) {
        return STYLE_RENEW;
    }
    if (how < 76) {
        return STYLE_TWICE;
    }
    if (how < 79) {
        return o->cold ? STYLE_COMPLETE : STYLE_LATE;
    }
    if (how < 86) {
        return STYLE_RELEASE;
    }
    if (how < 90) {
        return key[0] == 'h' ? STYLE_COMPLETE : STYLE_EXPIRE;
    }
    if (how < 93) {
        return key[0] == 'h' ? STYLE_COMPLETE : STYLE_RETRY;
    }
    return how < 96 ? STYLE_FAIL : how < 98 ? STYLE_UNKNOWN : STYLE_FORGET;
}

static bool is_over(const struct owner *o, const struct caller_held *held)
{
    return !o->careless && idem_attempt_lease_left_ms(held->attempt) == 0;
}

static void work(struct owner *o, const struct caller_held *held)
{
    enum style style = choose_style(o, held->key);

    note(o, "S", held->key, held->attempt->fence, "");
    if (style == STYLE_RELEASE) {
        end_as(o, held, IDEM_STATUS_RELEASED);
        return;
    }
    if (style == STYLE_RENEW) {
        (void)caller_renew(&o->caller, held, o->lease_ms + below(o, 1500));
    }
    caller_pause(below(o, o->work_ms));
    if (is_over(o, held)) {
        return; /* No effect any more. */
    }
    note(o, "E", held->key, held->attempt->fence, "");
    if (is_over(o, held)) {
        note(o, "Z", held->key, held->attempt->fence, "");
    }
    caller_pause(below(o, o->work_ms));
    switch (style) {
    case STYLE_FORGET:
        return;
    case STYLE_EXPIRE:
        (void)caller_expire(&o->caller, held);
        return;
    case STYLE_RETRY:
        retry(o, held);
        return;
    case STYLE_FAIL:
        end_as(o, held, IDEM_STATUS_FAILED);
        return;
    case STYLE_UNKNOWN:
        end_as(o, held, IDEM_STATUS_UNKNOWN);
        return;
    case STYLE_LATE:
        caller_pause(2 * o->lease_ms + below(o, (unsigned)o->lease_ms));
        break;
    default:
        break;
    }
    complete(o, held, style == STYLE_TWICE);
}

/* ---- Keys ---- */

static void choose_key(struct owner *o, char key[40])
{
    char kind = "rrrrhhhx"[below(o, 8)];
    int64_t every_ms = kind == 'x' ? SHORT_EVERY_MS : o->turn_ms;
    long long turn = caller_now_ms() / every_ms;

    if (kind != 'x' && below(o, 2) == 0) {
        turn -= below(o, (unsigned)(BACK_MS / every_ms));
    }
    (void)snprintf(key, 40, "%c%lld.%u", kind, turn, below(o, o->caller.keys));
}

static struct idem_request choose_request(struct owner *o, const char *key)
{
    struct idem_request request = IDEM_REQUEST_INIT;

    request.key = idem_str(key);
    request.on_expired_lease = key[0] == 'h' ? IDEM_HOLD : IDEM_RERUN;
    request.owner = idem_str("owner");
    request.lease_ms = o->lease_ms + below(o, 1000);
    request.retention_ms = key[0] == 'x' ? request.lease_ms : LONG_MS;
    request.attempts_max = 0;
    if (below(o, 8) == 0) {
        request.wait_ms = 1 + below(o, 300);
        request.flags = below(o, 2) == 0 ? IDEM_WAIT_THEN_RUN : 0;
    } else if (below(o, 8) == 0) {
        request.flags = IDEM_LIKELY_REPLAY;
    }
    return request;
}

static void note_verdict(const struct owner *o, const char *key,
                         const struct idem_attempt *attempt)
{
    const struct idem_record *record = attempt->record;
    struct idem_slice bytes = record->result.bytes;
    char id[PRODUCT_ID];

    if (attempt->verdict == IDEM_UNKNOWN) {
        note(o, "U", key, record->fence, "");
    } else if (attempt->verdict != IDEM_REPLAY) {
        return;
    } else if (product_check(bytes.base, bytes.len, id)) {
        note(o, "R", key, record->fence, id);
    } else {
        note(o, "X", key, record->fence, "");
    }
}

static void visit(struct owner *o)
{
    char key[40];
    struct idem_request request;
    struct caller_held held;

    choose_key(o, key);
    request = choose_request(o, key);
    note(o, "B", key, 0, "");
    if (caller_begin(&o->caller, key, &request, &held) != 0) {
        note(o, "Q", key, 0, "");
        if (o->naive) {
            note(o, "E", key, 0, "");
        }
        return;
    }
    if (held.attempt->verdict == IDEM_STARTED) {
        work(o, &held);
    } else {
        note_verdict(o, key, held.attempt);
    }
    idem_attempt_destroy(held.attempt);
}

static void get(struct owner *o)
{
    char key[40];

    choose_key(o, key);
    (void)caller_get(&o->caller, key);
}

void owner_run(struct caller *caller)
{
    struct owner *owner = (struct owner *)caller;

    while (caller_goes_on(caller)) {
        if (below(owner, 12) == 0) {
            get(owner);
        } else {
            visit(owner);
        }
        caller_pause(below(owner, owner->rest_ms));
    }
}

/* ---- The journal ---- */

static int note_replay(void *ctx, const struct idem_journal_info *info,
                       const struct idem_error *error)
{
    const unsigned *who = ctx;
    struct idem_slice bytes = info->outcome.result.bytes;
    char id[PRODUCT_ID];

    (void)error;
    if (info->state == IDEM_JOURNAL_RECORDED &&
        product_check(bytes.base, bytes.len, id)) {
        ledger_note(/* durable= */ false, "A %.*s %u %" PRIu64 " %s",
                    (int)info->key.len, (const char *)info->key.base, *who,
                    info->fence, id);
    }
    return 0;
}

void owner_replay(struct idem_store *store, struct idem_journal *journal,
                  unsigned who)
{
    if (idem_journal_replay(journal, store, NULL, note_replay, &who, NULL) !=
        0) {
        abort();
    }
}
