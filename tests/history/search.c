/* Depth first, one operation after the other.
 *
 * An operation may come next if no other one that is still to come was answered before it
 * was called. The search takes operations with an answer first. It takes one without an
 * answer only if that changes something: an owner's verb as often as it does, because it may
 * be applied twice, every other one once.
 *
 * The search remembers what it tried as a hash of 128 bits over the operations that it took
 * and the state. */
#include "search.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUDGET_FIRST = 20000,
    BUDGET_GROWS = 10,
    OPS_MAX = 1 << 30 /* Tags from here on are those of ops. */
};

struct hash {
    uint64_t a, b;
};

/* Calls and answers, in order of time; an op without an answer has none. */
struct event {
    struct event *next;
    struct event *prev;
    struct event *match; /* Of a call: its answer; NULL for an answer. */
    const struct op *op;
    struct hash tag;
};

/* An op without an answer. */
struct open {
    const struct op *op;
    const struct open *twin; /* A copy of it, to be taken first; or NULL. */
    struct hash tag;
    bool taken;
};

/* An order so far, and the operations that were tried after it. */
struct node {
    struct state state;
    struct hash taken;
    struct event *event; /* That led here, or */
    struct open *open;
    unsigned opens;           /* Without an answer, since the last with one. */
    struct event *next_event; /* To be tried; NULL: no more of them. */
    size_t next_open;
    struct state next[SPEC_MAX]; /* After the one that is being tried. */
    unsigned nexts;
    struct event *trying;
    struct open *trying_open;
    bool only;    /* It can leave no other state. */
    bool settled; /* Whatever follows, it may as well come here. */
};

/* Owners' verbs may be done again and again. */
static bool only_once(const struct op *op)
{
    return op->verb != VERB_END && op->verb != VERB_RENEW &&
           op->verb != VERB_EXPIRE;
}

struct run {
    const struct history *h;
    struct event head; /* Before the first event. */
    struct event *events;
    struct open *opens;
    size_t opens_len;
    unsigned opens_max; /* One after the other. */
    struct node *nodes;
    size_t len;
    size_t cap;
    struct hash *seen; /* Open addressing; zero: free. */
    size_t seen_len;
    size_t seen_cap;
    size_t deepest;
    size_t answered; /* Of the order so far. */
};

static void *must(void *block)
{
    if (block == NULL) {
        abort();
    }
    return block;
}

/* ---- Hashes ---- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
}

static struct hash tag_of(uint64_t n)
{
    return (struct hash){mix(n * 2 + 1), mix(~(n * 2))};
}

static struct hash with(struct hash hash, struct hash more)
{
    return (struct hash){hash.a ^ more.a, hash.b ^ more.b};
}

static struct hash hash_of(const struct state *state)
{
    uint64_t words[sizeof(*state) / 8];
    struct hash hash = {0x9e3779b97f4a7c15ULL, 0x2545f4914f6cdd1dULL};
    size_t i;

    memcpy(words, state, sizeof(words));
    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        hash.a = mix(hash.a ^ words[i]);
        hash.b = mix((hash.b + words[i]) * 0x9e3779b97f4a7c15ULL);
    }
    return hash;
}

static struct hash *seen_at(const struct run *run, struct hash hash)
{
    size_t at = hash.a;

    for (;; at++) {
        struct hash *slot = &run->seen[at & (run->seen_cap - 1)];

        if ((slot->a == 0 && slot->b == 0) ||
            (slot->a == hash.a && slot->b == hash.b)) {
            return slot;
        }
    }
}

/* Remembers @hash. True: it is new. */
static bool meet(struct run *run, struct hash hash)
{
    struct hash *slot;

    if (run->seen_len * 2 >= run->seen_cap) {
        struct hash *old = run->seen;
        size_t old_cap = run->seen_cap;
        size_t i;

        run->seen_cap = old_cap == 0 ? 1024 : old_cap * 2;
        run->seen = must(calloc(run->seen_cap, sizeof(*run->seen)));
        for (i = 0; i < old_cap; i++) {
            if (old[i].a != 0 || old[i].b != 0) {
                *seen_at(run, old[i]) = old[i];
            }
        }
        free(old);
    }
    hash.a |= 1; /* Zero is no hash. */
    slot = seen_at(run, hash);
    if (slot->a != 0) {
        return false;
    }
    *slot = hash;
    run->seen_len++;
    return true;
}

/* ---- Events ---- */

static int64_t time_of(const struct event *event)
{
    return event->match != NULL ? event->op->call : event->op->back;
}

static int by_time(const void *a, const void *b)
{
    const struct event *x = *(struct event *const *)a;
    const struct event *y = *(struct event *const *)b;

    if (time_of(x) != time_of(y)) {
        return time_of(x) < time_of(y) ? -1 : 1;
    }
    if ((x->match != NULL) != (y->match != NULL)) {
        return x->match != NULL ? -1 : 1; /* Calls first: neither precedes. */
    }
    return x < y ? -1 : x > y;
}

static bool same_request(const struct op *a, const struct op *b)
{
    return a->verb == b->verb && a->nonce == b->nonce && a->as == b->as;
}

static void add_open(struct run *run, const struct op *op, size_t no)
{
    struct open *open = &run->opens[run->opens_len];
    size_t i;

    *open = (struct open){.op = op, .tag = tag_of(OPS_MAX + no)};
    for (i = 0; i < run->opens_len && only_once(op); i++) {
        if (same_request(run->opens[i].op, op)) {
            open->twin = &run->opens[i];
        }
    }
    run->opens_len++;
}

static void set_up(struct run *run, const struct op *const *ops, size_t len)
{
    struct event **order = must(calloc(len * 2 + 1, sizeof(*order)));
    size_t n = 0;
    size_t i;

    run->events = must(calloc(len * 2 + 1, sizeof(*run->events)));
    run->opens = must(calloc(len + 1, sizeof(*run->opens)));
    for (i = 0; i < len; i++) {
        if (ops[i]->answer == ANSWER_NONE && !only_once(ops[i])) {
            add_open(run, ops[i], i); /* The more likely ones come first. */
        }
    }
    for (i = 0; i < len; i++) {
        if (ops[i]->answer == ANSWER_NONE) {
            if (only_once(ops[i])) {
                add_open(run, ops[i], i);
            }
            continue;
        }
        run->events[n] = (struct event){.op = ops[i],
                                        .match = &run->events[n + 1],
                                        .tag = tag_of(OPS_MAX + i)};
        run->events[n + 1] = (struct event){.op = ops[i]};
        order[n] = &run->events[n];
        order[n + 1] = &run->events[n + 1];
        n += 2;
    }
    qsort(order, n, sizeof(struct event *), by_time);
    run->head.next = NULL;
    for (i = n; i-- > 0;) {
        order[i]->next = run->head.next;
        if (order[i]->next != NULL) {
            order[i]->next->prev = order[i];
        }
        order[i]->prev = &run->head;
        run->head.next = order[i];
    }
    free(order);
}

static void take_out(struct event *event)
{
    event->prev->next = event->next;
    if (event->next != NULL) {
        event->next->prev = event->prev;
    }
}

static void put_back(struct event *event)
{
    event->prev->next = event;
    if (event->next != NULL) {
        event->next->prev = event;
    }
}

/* Returns the first answer that is still to be explained, or NULL. */
static struct event *first_answer(const struct run *run)
{
    struct event *event = run->head.next;

    while (event != NULL && event->match != NULL) {
        event = event->next;
    }
    return event;
}

/* ---- The order ---- */

static void push(struct run *run, const struct state *state, struct hash taken,
                 unsigned opens, struct event *event, struct open *open)
{
    struct node *node;

    if (event != NULL) {
        take_out(event->match);
        take_out(event);
        run->answered++;
    }
    if (open != NULL) {
        open->taken = only_once(open->op);
    }
    if (run->len == run->cap) {
        run->cap = run->cap == 0 ? 64 : run->cap * 2;
        run->nodes = must(realloc(run->nodes, run->cap * sizeof(*run->nodes)));
    }
    node = &run->nodes[run->len++];
    node->state = *state;
    node->taken = taken;
    node->event = event;
    node->open = open;
    node->opens = opens;
    node->next_event = run->head.next;
    node->next_open = 0;
    node->nexts = 0;
    node->settled = false;
}

static void pop(struct run *run)
{
    struct node *node = &run->nodes[--run->len];

    if (node->event != NULL) {
        put_back(node->event);
        put_back(node->event->match);
        run->answered--;
    }
    if (node->open != NULL) {
        node->open->taken = false;
    }
}

/* Finds the next operation that may follow @node, and the states after it. False: there is
 * none. */
static bool try_next(struct run *run, struct node *node)
{
    const struct event *answer = first_answer(run);
    int64_t latest = answer != NULL ? answer->op->store_back : INT64_MAX;

    if (node->settled) {
        return false;
    }
    node->trying = NULL;
    node->trying_open = NULL;
    if (node->next_event != NULL && node->next_event->match != NULL) {
        node->trying = node->next_event;
        node->next_event = node->next_event->next;
        node->nexts = spec_step(run->h, &node->state, node->trying->op, latest,
                                node->next);
        node->only = node->nexts == 1;
        return true;
    }
    while (node->opens < run->opens_max && node->next_open < run->opens_len) {
        struct open *open = &run->opens[node->next_open++];

        if (!open->taken && (open->twin == NULL || open->twin->taken) &&
            answer != NULL && open->op->call <= answer->op->back) {
            node->trying_open = open;
            node->nexts =
                spec_step(run->h, &node->state, open->op, latest, node->next);
            return true;
        }
    }
    return false;
}

/* Whether an operation that changes nothing now may change something later. A lease that is
 * over cannot be given up, nor a long one be renewed to an earlier end; once another call has
 * renewed it, or some time has passed, they can. Nor can a record be imported over another
 * one, until that is released. */
static bool may_change_later(const struct op *op)
{
    return op->verb == VERB_EXPIRE || op->verb == VERB_RENEW ||
           op->verb == VERB_IMPORT;
}

/* Goes on from the node @at with the operation that it tries. False: that was met before. */
static bool go_on(struct run *run, size_t at)
{
    struct node *node = &run->nodes[at];
    struct state state = node->next[--node->nexts];
    struct hash taken = node->taken;
    unsigned opens = 0;

    if (node->trying != NULL) {
        taken = with(taken, node->trying->tag);
        /* An operation that can change nothing may as well come now: any order stays
         * valid if it is moved to here. */
        node->settled = node->only && !may_change_later(node->trying->op) &&
                        memcmp(&state, &node->state, sizeof(state)) == 0;
    } else if (only_once(node->trying_open->op)) {
        taken = with(taken, node->trying_open->tag);
    }
    if (run->opens_max == UINT_MAX) {
        opens = 0; /* They are not counted. */
    } else if (node->trying == NULL) {
        opens = node->opens + 1;
    } else if (node->trying->op->verb == VERB_PURGE) {
        opens = node->opens; /* Its answer tells nothing. */
    }
    if (!meet(run, with(with(taken, hash_of(&state)), tag_of(opens)))) {
        return false;
    }
    push(run, &state, taken, opens, node->trying, node->trying_open);
    return true;
}

static void note_depth(struct run *run, struct search *search)
{
    const struct event *answer = first_answer(run);

    if (search->op == NULL || run->answered > run->deepest) {
        run->deepest = run->answered;
        search->stuck = run->nodes[run->len - 1].state;
        search->op = answer != NULL ? answer->op : NULL;
    }
}

static void go(struct run *run, uint64_t budget, struct search *search)
{
    struct state start;

    spec_start(&start);
    search->found = FOUND_NONE;
    push(run, &start, (struct hash){0, 0}, 0, NULL, NULL);
    while (run->len > 0) {
        struct node *node = &run->nodes[run->len - 1];

        if (first_answer(run) == NULL) {
            search->found = FOUND_ORDER;
            return;
        }
        if (run->seen_len > budget) {
            search->found = FOUND_TOO_HARD;
            return;
        }
        note_depth(run, search);
        if (node->nexts > 0) {
            (void)go_on(run, run->len - 1);
        } else if (!try_next(run, node)) {
            pop(run);
        }
    }
}

/* Searches once, with at most @opens_max operations without an answer in a row. */
static enum found try(const struct history *h, const struct op *const *ops,
                      size_t len, unsigned opens_max, uint64_t budget,
                      struct search *search)
{
    struct run run = {.h = h, .opens_max = opens_max};

    set_up(&run, ops, len);
    go(&run, budget, search);
    search->tried += run.seen_len;
    free(run.seen);
    free(run.nodes);
    free(run.opens);
    free(run.events);
    return search->found;
}

static bool any_open(const struct op *const *ops, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if (ops[i]->answer == ANSWER_NONE) {
            return true;
        }
    }
    return false;
}

/* Few of the operations without an answer mostly explain a right history, and soon; so the
 * search tries few of them first, and not for long. Only after it tried all is it certain
 * that no order explains the history. */
void search(const struct history *h, const struct op *const *ops, size_t len,
            uint64_t budget, struct search *ret_search)
{
    static const unsigned most[] = {UINT_MAX, 3, 2, 1};
    unsigned kinds = any_open(ops, len) ? 4 : 1;
    uint64_t part = BUDGET_FIRST;
    unsigned i;

    memset(ret_search, 0, sizeof(*ret_search));
    for (;; part *= BUDGET_GROWS) {
        part = part < budget ? part : budget;
        for (i = kinds; i-- > 0;) {
            if (try(h, ops, len, most[i], part, ret_search) == FOUND_ORDER) {
                return;
            }
        }
        if (ret_search->found == FOUND_NONE || part == budget) {
            return;
        }
    }
}
