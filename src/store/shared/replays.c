/* Implements the cache of completed records: a hash table by id, and a list in the order
 * of last use. */
#include "store/shared/replays.h"

#include "base/heap.h"
#include "base/list.h"
#include "queue/op.h"

#include <pthread.h>
#include <string.h>

enum {
    BUCKETS_MIN = 16,
    BUCKETS_MAX = 65536,
    BYTES_OF_BUCKET = 4096, /* A few records of the usual kind. */
    REPLAY_MAX = 64 * 1024  /* Larger records are read from the store. */
};

struct replay {
    struct replay *next; /* Used more recently. */
    struct replay *prev;
    struct replay *in_bucket; /* Next in its bucket. */
    uint64_t generation;
    int64_t until_boot_ms;
    size_t len;                /* Of this allocation. */
    struct idem_record record; /* Its slices point to bytes after it. */
};

struct bucket {
    struct replay *first;
    /* Tails of the last ids that were requested and not found. */
    uint32_t asked[2];
    uint32_t told; /* idem__replays_forget() calls for its ids. */
};

struct idem__replays {
    pthread_mutex_t mutex;
    size_t max;
    size_t len;
    struct replay *first; /* Least recently used. */
    struct replay *last;
    size_t buckets_len;
    struct bucket buckets[];
};

struct idem__replays *idem__replays_create(size_t max)
{
    struct idem__replays *replays;
    size_t n = max / BYTES_OF_BUCKET;

    n = n < BUCKETS_MIN ? BUCKETS_MIN : n > BUCKETS_MAX ? BUCKETS_MAX : n;
    replays = idem__zalloc(sizeof(*replays) + n * sizeof(replays->buckets[0]));
    if (replays != NULL) {
        replays->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        replays->max = max;
        replays->buckets_len = n;
    }
    return replays;
}

static struct bucket *bucket_of(struct idem__replays *replays,
                                const uint8_t *id)
{
    uint32_t bits; /* An id is a hash: any of its bits will do. */

    memcpy(&bits, id, sizeof(bits));
    return &replays->buckets[bits % replays->buckets_len];
}

static struct replay **find(struct idem__replays *replays, const uint8_t *id)
{
    struct replay **at = &bucket_of(replays, id)->first;

    while (*at != NULL && memcmp((*at)->record.id, id, IDEM_ID_LEN) != 0) {
        at = &(*at)->in_bucket;
    }
    return at;
}

static void drop(struct idem__replays *replays, struct replay **at)
{
    struct replay *replay = *at;

    *at = replay->in_bucket;
    IDEM__LIST_REMOVE(replays, replay);
    replays->len -= replay->len;
    idem__free(replay);
}

/* Drops the least recently used records until there is room for @len more bytes. */
static void make_room(struct idem__replays *replays, size_t len)
{
    while (replays->first != NULL && replays->len + len > replays->max) {
        drop(replays, find(replays, replays->first->record.id));
    }
}

void idem__replays_destroy(struct idem__replays *replays)
{
    if (replays != NULL) {
        while (replays->first != NULL) {
            drop(replays, find(replays, replays->first->record.id));
        }
        (void)pthread_mutex_destroy(&replays->mutex);
        idem__free(replays);
    }
}

bool idem__replays_has(struct idem__replays *replays,
                       const uint8_t id[IDEM_ID_LEN])
{
    bool has;

    (void)pthread_mutex_lock(&replays->mutex);
    has = *find(replays, id) != NULL;
    (void)pthread_mutex_unlock(&replays->mutex);
    return has;
}

bool idem__replays_asked(struct idem__replays *replays,
                         const uint8_t id[IDEM_ID_LEN])
{
    struct bucket *bucket = bucket_of(replays, id);
    uint32_t tail;
    bool again;

    memcpy(&tail, id + IDEM_ID_LEN - sizeof(tail), sizeof(tail));
    (void)pthread_mutex_lock(&replays->mutex);
    again = bucket->asked[0] == tail || bucket->asked[1] == tail;
    if (!again) {
        bucket->asked[1] = bucket->asked[0];
        bucket->asked[0] = tail;
    }
    (void)pthread_mutex_unlock(&replays->mutex);
    return again;
}

/* Loads the record for the engine; it was verified when it was kept. */
static int load(void *ctx, const uint8_t *id, bool with_bodies,
                struct idem_record *ret_record, struct idem_error *ret_error)
{
    const struct replay *replay = ctx;

    (void)id;
    (void)ret_error;
    *ret_record = replay->record;
    if (!with_bodies) {
        ret_record->result.bytes = idem_bytes(NULL, 0);
        ret_record->input = idem_bytes(NULL, 0);
    }
    return 1;
}

static bool answer(struct idem__replays *replays, struct replay *replay,
                   struct idem_op *op, const struct idem_now *now)
{
    struct idem_table memory = {.load = load, .ctx = replay};

    if (!idem__table_peek(&memory, op, now)) {
        return false; /* Its retention is over, so the claim needs the store. */
    }
    IDEM__LIST_REMOVE(replays, replay);
    IDEM__LIST_APPEND(replays, replay);
    return true;
}

bool idem__replays_answer(struct idem__replays *replays, struct idem_op *op,
                          uint64_t generation, const struct idem_now *now)
{
    struct replay **at;
    bool answered = false;

    (void)pthread_mutex_lock(&replays->mutex);
    at = find(replays, op->id);
    if (*at != NULL && ((*at)->generation != generation ||
                        now->boot_ms >= (*at)->until_boot_ms)) {
        drop(replays, at);
    } else if (*at != NULL) {
        answered = answer(replays, *at, op, now);
    }
    (void)pthread_mutex_unlock(&replays->mutex);
    return answered;
}

/* Not whole: the caller fetches the bodies itself, so the answer has none. */
static bool is_whole_replay(const struct idem_op *op)
{
    const struct idem_record *record = op->record;

    return op->error.code == 0 && op->verdict == IDEM_REPLAY &&
           op->has_record && record->status == IDEM_STATUS_COMPLETED &&
           record->result.bytes.len == record->result_len &&
           record->input.len == record->input_len;
}

static struct replay *copy_of(const struct idem_record *record, size_t len)
{
    struct replay *replay = idem__alloc(len);

    if (replay != NULL) {
        replay->len = len;
        replay->record = *record;
        idem__op_copy_record(&replay->record, (uint8_t *)(replay + 1));
    }
    return replay;
}

void idem__replays_keep(struct idem__replays *replays, const struct idem_op *op,
                        uint64_t before, uint64_t after, int64_t until_boot_ms)
{
    struct replay *replay;
    struct replay **at;
    size_t len;

    if (!is_whole_replay(op) || !idem__generation_is_settled(before) ||
        before != after) {
        return;
    }
    len = sizeof(*replay) + idem__op_record_len(op->record);
    replay = len > REPLAY_MAX || len > replays->max ? NULL
                                                    : copy_of(op->record, len);
    if (replay == NULL) {
        return;
    }
    replay->generation = before;
    replay->until_boot_ms = until_boot_ms;
    (void)pthread_mutex_lock(&replays->mutex);
    at = find(replays, op->id);
    /* Two readings may be answered in either order: a replay never goes back. */
    if (*at != NULL && (*at)->generation == before &&
        (*at)->record.fence > replay->record.fence) {
        (void)pthread_mutex_unlock(&replays->mutex);
        idem__free(replay);
        return;
    }
    if (*at != NULL) {
        drop(replays, at);
    }
    make_room(replays, len);
    at = find(replays, op->id); /* A dropped record may have linked here. */
    replay->in_bucket = NULL;
    *at = replay;
    IDEM__LIST_APPEND(replays, replay);
    replays->len += len;
    (void)pthread_mutex_unlock(&replays->mutex);
}

uint32_t idem__replays_told(struct idem__replays *replays,
                            const uint8_t id[IDEM_ID_LEN])
{
    uint32_t told;

    (void)pthread_mutex_lock(&replays->mutex);
    told = bucket_of(replays, id)->told;
    (void)pthread_mutex_unlock(&replays->mutex);
    return told;
}

void idem__replays_forget(struct idem__replays *replays,
                          const uint8_t id[IDEM_ID_LEN])
{
    struct replay **at;

    (void)pthread_mutex_lock(&replays->mutex);
    bucket_of(replays, id)->told++;
    at = find(replays, id);
    if (*at != NULL) {
        drop(replays, at);
    }
    (void)pthread_mutex_unlock(&replays->mutex);
}
