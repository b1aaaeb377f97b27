/* Keeps rate limits in memory: a ring of windows, and one hash table by id of the windows
 * and the requests that they counted. */
#include "store/memory/limit.h"

#include "base/heap.h"
#include "limit/limit.h"

/* A request, or (the first member of) a window. */
struct idem__memory_entry {
    uint8_t id[IDEM_ID_LEN];
    struct idem__memory_entry *next;    /* In its bucket. */
    struct idem__memory_entry *sibling; /* Next of the same window. */
    int64_t entry;
};

struct idem__memory_window {
    struct idem__memory_entry self;
    struct idem__memory_entry *requests;
    struct idem__memory_window *before; /* In the ring. */
    struct idem__memory_window *after;
    uint64_t used;
    uint64_t refusals;
    int64_t expires_ms;
};

enum {
    FIRST_BUCKETS = 64,
    LOOKED_AT = 2, /* Windows checked for expiry when a new one begins. */
};

static struct idem__memory_entry **bucket_of(
    const struct idem__memory_limits *limits, const uint8_t *id)
{
    size_t hash;

    memcpy(&hash, id, sizeof(hash)); /* The id is a hash already. */
    return &limits->buckets[hash & (limits->buckets_len - 1)];
}

static struct idem__memory_entry *find(const struct idem__memory_limits *limits,
                                       const uint8_t *id)
{
    struct idem__memory_entry *at;

    if (limits->buckets_len == 0) {
        return NULL;
    }
    at = *bucket_of(limits, id);
    while (at != NULL && memcmp(at->id, id, IDEM_ID_LEN) != 0) {
        at = at->next;
    }
    return at;
}

static void link_in(struct idem__memory_limits *limits,
                    struct idem__memory_entry *entry)
{
    struct idem__memory_entry **at = bucket_of(limits, entry->id);

    entry->next = *at;
    *at = entry;
}

static void link_out(struct idem__memory_limits *limits,
                     const struct idem__memory_entry *entry)
{
    struct idem__memory_entry **at = bucket_of(limits, entry->id);

    while (*at != entry) {
        at = &(*at)->next;
    }
    *at = entry->next;
    limits->len--;
}

/* Makes room for one more window and one more request. */
static int make_room(struct idem__memory_limits *limits)
{
    struct idem__memory_limits grown = *limits;
    size_t i;

    if (limits->len + 2 <= limits->buckets_len) {
        return 0;
    }
    grown.buckets_len =
        limits->buckets_len == 0 ? FIRST_BUCKETS : 2 * limits->buckets_len;
    grown.buckets =
        idem__zalloc(grown.buckets_len * sizeof(struct idem__memory_entry *));
    if (grown.buckets == NULL) {
        return IDEM_ENOMEM;
    }
    for (i = 0; i < limits->buckets_len; i++) {
        struct idem__memory_entry *at = limits->buckets[i];

        while (at != NULL) {
            struct idem__memory_entry *next = at->next;

            link_in(&grown, at);
            at = next;
        }
    }
    idem__free(limits->buckets);
    *limits = grown;
    return 0;
}

/* ---- Windows ---- */

static void free_window(struct idem__memory_limits *limits,
                        struct idem__memory_window *window)
{
    struct idem__memory_entry *at = window->requests;

    while (at != NULL) {
        struct idem__memory_entry *next = at->sibling;

        link_out(limits, at);
        idem__free(at);
        at = next;
    }
    link_out(limits, &window->self);
    window->before->after = window->after;
    window->after->before = window->before;
    if (limits->windows == window) {
        limits->windows = window->after == window ? NULL : window->after;
    }
    idem__free(window);
}

/* Checks the next @n windows, and frees those that have expired. */
static void clean(struct idem__memory_limits *limits,
                  const struct idem_now *now, size_t n)
{
    for (; n > 0 && limits->windows != NULL; n--) {
        struct idem__memory_window *window = limits->windows;

        limits->windows = window->after;
        if (idem__limit_expired(window->expires_ms, now)) {
            free_window(limits, window);
        }
    }
}

static void add_window(struct idem__memory_limits *limits,
                       struct idem__memory_window *window,
                       const struct idem_op *op)
{
    struct idem__memory_window *at = limits->windows;

    memcpy(window->self.id, op->u.limit.window, IDEM_ID_LEN);
    if (at == NULL) {
        window->after = window;
        window->before = window;
        limits->windows = window;
    } else {
        window->after = at;
        window->before = at->before;
        at->before->after = window;
        at->before = window;
    }
    link_in(limits, &window->self);
    limits->len++;
}

/* ---- The verb ---- */

/* Writes all of the decision or, if memory runs out, nothing. */
static int save(struct idem__memory_limits *limits,
                struct idem__memory_window *window, const struct idem_op *op,
                const struct idem_limit_decision *decision,
                const struct idem_now *now)
{
    struct idem__memory_entry *entry = idem__zalloc(sizeof(*entry));

    if (entry == NULL || make_room(limits) != 0) {
        idem__free(entry);
        return IDEM_ENOMEM;
    }
    if (window == NULL) {
        window = idem__zalloc(sizeof(*window));
        if (window == NULL) {
            idem__free(entry);
            return IDEM_ENOMEM;
        }
        clean(limits, now, LOOKED_AT);
        add_window(limits, window, op);
    }
    memcpy(entry->id, op->u.limit.request, IDEM_ID_LEN);
    entry->entry = decision->entry;
    entry->sibling = window->requests;
    window->requests = entry;
    link_in(limits, entry);
    limits->len++;
    window->used = decision->used;
    window->refusals = decision->refusals;
    if (decision->expires_ms > window->expires_ms) {
        window->expires_ms = decision->expires_ms;
    }
    return 0;
}

void idem__memory_limit(struct idem__memory_limits *limits, struct idem_op *op,
                        const struct idem_now *now)
{
    struct idem__memory_window *window =
        (struct idem__memory_window *)find(limits, op->u.limit.window);
    const struct idem__memory_entry *entry = find(limits, op->u.limit.request);
    struct idem_limit_state found = {.has_window = window != NULL};
    struct idem_limit_decision decision;

    if (window != NULL) {
        found.used = window->used;
        found.refusals = window->refusals;
    }
    if (entry != NULL) {
        found.has_entry = true;
        found.entry = entry->entry;
    }
    op->changed = false;
    if (!idem__limit_settle(op, &found, now, &decision) || !decision.remember) {
        return;
    }
    if (save(limits, window, op, &decision, now) != 0) {
        (void)idem__op_fail(op, IDEM_ENOMEM, "%s",
                            idem_error_text(IDEM_ENOMEM));
        return;
    }
    op->changed = true;
}

void idem__memory_limits_purge(struct idem__memory_limits *limits,
                               const struct idem_now *now)
{
    clean(limits, now, limits->len);
}

void idem__memory_limits_finish(struct idem__memory_limits *limits)
{
    while (limits->windows != NULL) {
        free_window(limits, limits->windows);
    }
    idem__free(limits->buckets);
    memset(limits, 0, sizeof(*limits));
}
