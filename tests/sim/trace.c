/* Hashing and keeping events. */
#include "trace.h"

#include "contract/store.h"

#include <stdio.h>

void trace_start(struct trace *trace, uint64_t seed, bool live)
{
    trace->hash = seed ^ 0xcbf29ce484222325ULL;
    trace->len = 0;
    trace->live = live;
}

enum kind {
    NUMBER,
    VERB,
    CODE,
    VERDICT,
    STATUS,
    POLICY
};

static const char *name_of(enum kind kind, int64_t n, char buf[32])
{
    static const char *const verbs[] = {
        [IDEM_OP_BEGIN] = "begin",   [IDEM_OP_END] = "end",
        [IDEM_OP_RENEW] = "renew",   [IDEM_OP_EXPIRE] = "expire",
        [IDEM_OP_GET] = "get",       [IDEM_OP_LIST] = "list",
        [IDEM_OP_IMPORT] = "import", [IDEM_OP_RESOLVE] = "resolve",
        [IDEM_OP_PURGE] = "purge",
    };

    switch (kind) {
    case VERB:
        return verbs[n];
    case CODE:
        return idem_error_name((int)n);
    case VERDICT:
        return idem_verdict_name((enum idem_verdict)n);
    case STATUS:
        return idem_status_name((enum idem_status)n);
    case POLICY:
        return n == IDEM_HOLD ? "hold" : "rerun";
    case NUMBER:
        break;
    }
    (void)snprintf(buf, 32, n == IDEM_NEVER ? "never" : "%lld", (long long)n);
    return buf;
}

static void print(const struct trace_event *e)
{
    static const struct {
        enum kind kind;
        const char *text;
    } events[] = {
#define X(name, kind, text) {kind, text},
        EVENT_MAP(X)
#undef X
    };
    char who[16] = "store";
    char what[160];
    char a[32];
    char b[32];

    if (e->who >= 0) {
        (void)snprintf(who, sizeof(who), "c%d", e->who);
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(what, sizeof(what), events[e->event].text,
                   name_of(events[e->event].kind, e->a, a),
                   name_of(NUMBER, e->b, b));
#pragma GCC diagnostic pop
    printf("# %lld %-5s %s\n", (long long)e->at, who, what);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    return hash ^ hash >> 29;
}

void trace_add(struct trace *trace, int64_t at, enum event event, int who,
               int64_t a, int64_t b)
{
    struct trace_event *e = &trace->kept[trace->len++ % TRACE_KEPT];

    *e = (struct trace_event){
        .at = at, .a = a, .b = b, .event = event, .who = who};
    trace->hash = mix(trace->hash, (uint64_t)at << 16 ^ (uint64_t)event << 8 ^
                                       (uint64_t)(who + 1));
    trace->hash = mix(trace->hash, (uint64_t)a);
    trace->hash = mix(trace->hash, (uint64_t)b);
    if (trace->live) {
        print(e);
    }
}

void trace_print(const struct trace *trace)
{
    uint64_t first = trace->len > TRACE_KEPT ? trace->len - TRACE_KEPT : 0;
    uint64_t i;

    for (i = first; i < trace->len; i++) {
        print(&trace->kept[i % TRACE_KEPT]);
    }
}
