/* What happened in a schedule, as numbers: hashed all of it, kept the end. */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stdbool.h>
#include <stdint.h>

/* Name, what kind of number the first one is, and what is printed with both. */
#define EVENT_MAP(X)                                                           \
    X(BORN, NUMBER, "starts, %s rounds")                                       \
    X(CRASH, NUMBER, "crashes")                                                \
    X(PAUSE, NUMBER, "is paused for %s ms")                                    \
    X(STOP, NUMBER, "stops %s")                                                \
    X(START, NUMBER, "starts %s")                                              \
    X(REBOOT, NUMBER, "host reboots; wall clock off by %s ms, boot clock %s")  \
    X(JUMP, NUMBER, "wall clock off by %s ms, was %s")                         \
    X(IDLE, NUMBER, "nothing for %s ms")                                       \
    X(FULL, NUMBER, "disk full: %s")                                           \
    X(FLIP, NUMBER, "byte %s of key %s flipped")                               \
    X(REPAIR, NUMBER, "byte %s of key %s put right")                           \
    X(QUIET, NUMBER, "nothing breaks from here on, after %s steps")            \
    X(ASK, VERB, "calls %s for key %s")                                        \
    X(BEGIN, POLICY, "... %s, lease %s ms")                                    \
    X(TOLD, CODE, "is told %s")                                                \
    X(VERDICT, VERDICT, "is told %s, fence %s")                                \
    X(LEFT, NUMBER, "has %s ms of its lease left, fence %s")                   \
    X(SUBMIT, VERB, "submits %s, op %s")                                       \
    X(CANCEL, NUMBER, "cancels op %s")                                         \
    X(TAKE, NUMBER, "its op %s is taken by the store, fate %s")                \
    X(SEND, NUMBER, "sends op %s, rev %s expected")                            \
    X(COMMIT, NUMBER, "writes key %s, rev %s")                                 \
    X(STATUS, STATUS, "... %s, fence %s")                                      \
    X(LEASE, NUMBER, "... lease ends %s, expires %s")                          \
    X(REFUSE, NUMBER, "refuses op %s, rev is %s")                              \
    X(ANSWER, CODE, "has its op answered: %s, op %s")                          \
    X(PURGE, NUMBER, "purges key %s, fence %s")                                \
    X(EFFECT, NUMBER, "effect begins on key %s, fence %s")                     \
    X(EFFECT_END, NUMBER, "effect ends on key %s, fence %s")                   \
    X(NOW, NUMBER, "takes store time for %s, give or take %s")

enum event {
#define X(name, kind, text) EV_##name,
    EVENT_MAP(X)
#undef X
};

enum {
    TRACE_KEPT = 120
};

struct trace_event {
    int64_t at;
    int64_t a;
    int64_t b;
    enum event event;
    int who;
};

struct trace {
    uint64_t hash;
    uint64_t len;
    bool live; /* Print each event at once. */
    struct trace_event kept[TRACE_KEPT];
};

void trace_start(struct trace *trace, uint64_t seed, bool live);

/* @who is a client, or -1: the store. */
void trace_add(struct trace *trace, int64_t at, enum event event, int who,
               int64_t a, int64_t b);

/* Prints the last events. */
void trace_print(const struct trace *trace);

#endif
