/* What was met in a run: a run that met too little proves nothing. */
#ifndef SIM_STATS_H
#define SIM_STATS_H

#include <idem.h>

/* Classes of schedules: how it is chosen what goes next (order.h). */
#define CLASS_MAP(X)                                                           \
    X(UNIFORM, "uniform")                                                      \
    X(PRIORITY, "priority")                                                    \
    X(SWIZZLE, "swizzle")

/* Faults that the scheduler made: name, text. Each must be hit. */
#define FAULT_MAP(X)                                                           \
    X(LOST_ANSWER, "lost answer")                                              \
    X(DROPPED, "dropped, said unknown")                                        \
    X(REFUSED, "dropped, said unavailable")                                    \
    X(DOUBLED, "doubled write")                                                \
    X(DELAYED, "delayed write")                                                \
    X(REORDERED, "reordered")                                                  \
    X(TIMED_OUT, "timed out, detached")                                        \
    X(TAKEN_BACK, "timed out, taken back")                                     \
    X(RACED, "compare and swap refused")                                       \
    X(REAPPEARED, "failed commit reappeared")                                  \
    X(CRASHED, "client crashed")                                               \
    X(RESTARTED, "client restarted")                                           \
    X(PAUSED, "client paused past its lease")                                  \
    X(FELL_BEHIND, "priority change")                                          \
    X(STOPPED, "swizzle stop")                                                 \
    X(JUMPED, "wall clock jumped")                                             \
    X(REBOOTED, "host rebooted")                                               \
    X(WALL_TRUSTED, "claim by an unchecked wall clock")                        \
    X(CLOCK_AWAY, "clock did not answer")                                      \
    X(RANDOM_AWAY, "random source did not answer")                             \
    X(DISK_FULL, "disk full")                                                  \
    X(FLIPPED, "stored byte flipped")                                          \
    X(FLIPPED_ANSWER, "answer corrupted")                                      \
    X(IDLE, "nothing for hours")                                               \
    X(UNSYNCHRONISED, "booted with a clock that is days ahead")                \
    X(DOUBTED, "its time shown to be over, and kept")                          \
    X(PUT_RIGHT, "clock put right in doubt")                                   \
    X(BELIEVED, "clock never put right, and believed")

/* DynamoDB: what becomes of a request, and what the table does by itself. */
#define NET_MAP(X)                                                             \
    X(GOOD, "carried and answered")                                            \
    X(NOT_SENT, "not sent")                                                    \
    X(THROTTLED, "throttled")                                                  \
    X(LOST, "lost")                                                            \
    X(ANSWER_LOST, "applied, answer lost")                                     \
    X(LATE, "applied late")                                                    \
    X(FAILED_BEFORE, "500, not applied")                                       \
    X(FAILED_AFTER, "500, applied")                                            \
    X(TWICE, "sent twice")                                                     \
    X(CONFLICT, "met a transaction")                                           \
    X(NO_OLD_ITEM, "refused without the old item")                             \
    X(LEFT_OVER, "batch not done to its end")                                  \
    X(SKEWED, "refused for its time")                                          \
    X(TTL, "deleted by its ttl")

/* PostgreSQL: what becomes of a batch, and what happens at the server. */
#define PG_MAP(X)                                                              \
    X(GOOD, "carried and answered")                                            \
    X(SLOW, "carried, and answered late")                                      \
    X(REFUSED, "connection refused")                                           \
    X(NO_ANSWER, "connection not answered")                                    \
    X(CUT_BEFORE, "lost before it")                                            \
    X(CUT_IN, "lost in it, rolled back")                                       \
    X(CUT_AFTER, "committed, and then lost")                                   \
    X(CUT_LATE, "lost, and committed later")                                   \
    X(SILENT, "committed, not answered")                                       \
    X(CONFLICT, "40001, 40P01 or 57014")                                       \
    X(CONFLICT_AT_COMMIT, "40001 at COMMIT")                                   \
    X(ENDED, "57P01")                                                          \
    X(FULL, "53100")                                                           \
    X(DENIED, "42501")                                                         \
    X(MANY, "batch of several")                                                \
    X(DIVIDED, "failed together, tried alone")                                 \
    X(TIMED_OUT, "lost, for it took too long")                                 \
    X(TIMED_OUT_IN_LINE, "not sent in time")                                   \
    X(HELD, "row held by somebody else")                                       \
    X(SKIPPED, "update skipped a held row")                                    \
    X(WAITED, "claim waited for another")                                      \
    X(STALLED, "claim stood still once it had looked")                         \
    X(LOCK_TIMEOUT, "55P03")                                                   \
    X(NEITHER, "claim not written, and no row shown")                          \
    X(LOADED, "bodies loaded")                                                 \
    X(SET_BACK, "server's clock set back")

/* What the clients met: name, text. Each must be hit, too. */
#define SCENE_MAP(X)                                                           \
    X(TAKEOVER, "takeover")                                                    \
    X(GAVE_UP, "gave up after too many attempts")                              \
    X(HELD, "held lease over: unknown")                                        \
    X(OWN_CLAIM, "own earlier claim recognised")                               \
    X(TAKEN_BACK, "own claim, ended by its lease, taken back")                 \
    X(OWN_END, "own earlier end recognised")                                   \
    X(REUSED, "new life after retention")                                      \
    X(AGAIN, "begun again after release")                                      \
    X(PURGED, "record purged")                                                 \
    X(IMPORTED, "record imported")                                             \
    X(RESOLVED, "resolved by a person")                                        \
    X(CORRECTED, "a person corrected a person")                                \
    X(EXTENDED, "lease renewed")                                               \
    X(LATE_LOST, "late verb answered LOST")                                    \
    X(SECOND_LOST, "second completion answered LOST")                          \
    X(TOMBSTONE, "tombstone replayed")                                         \
    X(WAITED, "waiter answered")                                               \
    X(WAITED_RUN, "waiter started")                                            \
    X(BY_TOKEN, "ended by token")                                              \
    X(EXPIRED, "given up by expire")                                           \
    X(FOLLOWED, "said after its lease had closed it")                          \
    X(BY_ONCE, "idem_once() ran the work")                                     \
    X(TOO_LATE, "no effect: the lease was over")                               \
    X(FOREVER, "lease without an end")                                         \
    X(RETRIED, "ended to be run again")                                        \
    X(REOPENED, "reopened by a person")                                        \
    X(RUN_AGAIN, "run again at once")                                          \
    X(PAUSED, "answered BUSY in a pause")                                      \
    X(AFTER_PAUSE, "run again after a pause")                                  \
    X(BUDGET, "failed with the last of its budget")                            \
    X(BOUNDED, "lease of a fast clock made shorter")                           \
    X(FORCED, "live owner overruled by a person")                              \
    X(OVERRULED, "overruled owner answered LOST")                              \
    X(RECALLED, "replayed from memory")

enum class {
#define X(name, text) CLASS_##name,
    CLASS_MAP(X)
#undef X
    CLASSES
};

enum net {
#define X(name, text) NET_##name,
    NET_MAP(X)
#undef X
    NETS
};

enum pg {
#define X(name, text) PG_##name,
    PG_MAP(X)
#undef X
    PGS
};

enum fault {
#define X(name, text) FAULT_##name,
    FAULT_MAP(X)
#undef X
    FAULTS
};

enum scene {
#define X(name, text) SCENE_##name,
    SCENE_MAP(X)
#undef X
    SCENES
};

enum {
    VERDICTS = 8,
    CODES = 11
}; /* One more than there are. */

/* Plain numbers, so that processes can share them. */
struct stats {
    uint64_t schedules;
    uint64_t steps;
    uint64_t ops;
    uint64_t by_class[CLASSES];
    uint64_t killed[CLASSES]; /* Schedules in which an invariant broke. */
    uint64_t hash; /* Of all traces, in whatever order they were run. */
    uint64_t faults[FAULTS];
    uint64_t net[NETS];
    uint64_t pg[PGS];
    uint64_t scenes[SCENES];
    uint64_t verdicts[VERDICTS];
    uint64_t codes[CODES]; /* By -code. */
};

const char *class_name(enum class class);
void stats_add(struct stats *to, const struct stats *more);

/* What the clients were told, and met. */
void stats_print_met(const struct stats *stats);
void stats_print(const struct stats *stats);

#endif
