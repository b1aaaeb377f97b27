/* ROW(42) Power cuts under the SQLite store: whatever a disk may hold after one,
 * the store opens, what was answered is there, and nothing is half there. */
#include "cut.h"
#include "story.h"
#include "vfs.h"

#include <idem/sqlite.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    SEEDS = 4,
    AGAIN_EVERY = 4
};

struct rig {
    char directory[64];
    char path[128]; /* Where images are opened. */
    char url[160];
    struct story story;
    struct disk_image start;
    struct disk_log log;
};

struct count {
    unsigned long images;
    unsigned long again; /* Cut once more while they recovered. */
    unsigned long bad;
    const char *first;
};

static void note(struct count *count, const char *fault)
{
    count->images++;
    if (fault != NULL) {
        count->bad++;
        count->first = count->first != NULL ? count->first : fault;
    }
}

static void name_file(struct rig *rig, const char *name)
{
    (void)snprintf(rig->path, sizeof(rig->path), "%s/%s", rig->directory, name);
    (void)snprintf(rig->url, sizeof(rig->url), "sqlite:%s", rig->path);
}

/* Lives through a story on a new store and keeps what the disk saw. */
static void record(struct rig *rig, uint64_t *seed)
{
    struct idem_store *store;

    name_file(rig, "live.db");
    if (idem_open(rig->url, NULL, &store, NULL) != 0) {
        abort();
    }
    idem_close(store);
    disk_load(&rig->start, rig->path);
    disk_start(&rig->log);
    story_live(&rig->story, rig->url, seed);
    disk_stop();
    name_file(rig, "image.db");
}

/* The power goes again while the store recovers from the first cut. */
static const char *cut_again(struct rig *rig, const struct disk_image *image,
                             size_t moment, uint64_t *seed)
{
    struct disk_log log;
    struct disk_image second;
    struct cut cut;
    const char *fault;

    disk_save(image, rig->path);
    disk_start(&log);
    fault = story_check(&rig->story, rig->url, moment, /* early= */ false);
    disk_stop();
    if (fault == NULL) {
        cut_init(&cut, &log, image, CUT_HONEST);
        cut_take(&cut, log.len == 0 ? 0 : cut_random(seed) % (log.len + 1),
                 seed, &second);
        disk_save(&second, rig->path);
        fault = story_check(&rig->story, rig->url, moment, /* early= */ false);
        disk_image_free(&second);
        cut_finish(&cut);
    }
    disk_log_free(&log);
    return fault;
}

/* Cuts at @images moments, from first to last. */
static void cut_all(struct rig *rig, unsigned long images, enum cut_trust trust,
                    bool early, uint64_t *seed, struct count *count)
{
    struct cut cut;
    unsigned long i;

    cut_init(&cut, &rig->log, &rig->start, trust);
    for (i = 0; i < images; i++) {
        size_t moment =
            (size_t)((double)rig->log.len * (double)(i + 1) / (double)images);
        bool again = trust == CUT_HONEST && !early && i % AGAIN_EVERY == 0;
        struct disk_image image;

        cut_take(&cut, moment, seed, &image);
        disk_save(&image, rig->path);
        note(count, story_check(&rig->story, rig->url, moment, early));
        if (again) {
            count->again++;
            note(count, cut_again(rig, &image, moment, seed));
        }
        disk_image_free(&image);
    }
    cut_finish(&cut);
}

/* ---- A store that is made, marked, or set back ---- */

static const char *open_image(const struct rig *rig)
{
    struct idem_error error = {0};
    struct idem_store *store;

    if (idem_open(rig->url, NULL, &store, &error) != 0) {
        fprintf(stderr, "# %s\n", error.text);
        return "cannot open the store";
    }
    idem_close(store);
    return NULL;
}

/* Cuts at every moment of what was recorded. What comes next must open, from
 * @first on: once it was answered. */
static void cut_everywhere(struct rig *rig, size_t first,
                           const char *(*check)(const struct rig *rig),
                           uint64_t *seed, struct count *count)
{
    size_t moment;
    int i;

    for (i = 0; i < SEEDS * 4; i++) {
        struct cut cut;

        cut_init(&cut, &rig->log, &rig->start, CUT_WHOLE);
        for (moment = first; moment <= rig->log.len; moment++) {
            struct disk_image image;

            cut_take(&cut, moment, seed, &image);
            disk_save(&image, rig->path);
            note(count, check(rig));
            disk_image_free(&image);
        }
        cut_finish(&cut);
    }
}

/* The power goes while the first caller makes the store. */
static void cut_the_making(struct rig *rig, uint64_t *seed, struct count *count)
{
    struct idem_store *store;

    memset(&rig->start, 0, sizeof(rig->start));
    disk_start(&rig->log);
    if (idem_open(rig->url, NULL, &store, NULL) != 0) {
        abort();
    }
    idem_close(store);
    disk_stop();
    cut_everywhere(rig, 0, open_image, seed, count);
    disk_log_free(&rig->log);
}

/* Puts a store there that another one's lock file lies beside, which has been
 * newer: it must be marked before it is used. */
static void put_another(struct rig *rig)
{
    struct disk_image first;
    struct disk_image second;
    struct disk_bytes lock;
    struct idem_store *store;
    int i;

    for (i = 0; i < 2; i++) {
        memset(&rig->start, 0, sizeof(rig->start));
        disk_save(&rig->start, rig->path);
        if (idem_open(rig->url, NULL, &store, NULL) != 0) {
            abort();
        }
        idem_close(store);
        disk_load(i == 0 ? &first : &second, rig->path);
        (void)usleep(2000);
    }
    lock = first.files[DISK_LOCK];
    first.files[DISK_LOCK] = second.files[DISK_LOCK];
    second.files[DISK_LOCK] = lock;
    disk_save(&first, rig->path);
    rig->start = first;
    disk_image_free(&second);
}

/* The power goes after the mark was answered. */
static void cut_the_mark(struct rig *rig, uint64_t *seed, struct count *refused,
                         struct count *count)
{
    struct idem_sqlite_restored restored = IDEM_SQLITE_RESTORED_INIT;
    struct idem_error error = {0};

    put_another(rig);
    note(refused, open_image(rig));
    disk_start(&rig->log);
    if (idem_sqlite_mark_restored(rig->path, NULL, NULL, &restored, &error) !=
        0) {
        fprintf(stderr, "powercut: mark: %s\n", error.text);
        abort();
    }
    disk_stop();
    cut_everywhere(rig, rig->log.len, open_image, seed, count);
    disk_log_free(&rig->log);
    disk_image_free(&rig->start);
}

/* ---- A store whose clock is set back ---- */

#define DAY_MS ((int64_t)24 * 3600 * 1000)
#define AHEAD_MS (30 * DAY_MS)

static int64_t ahead_ms;

/* Of a boot before this one, while it is ahead. */
static int clock_ahead(void *ctx, struct idem_clock_reading *ret_reading)
{
    struct timespec wall;
    struct timespec boot;

    (void)ctx;
    if (clock_gettime(CLOCK_REALTIME, &wall) != 0 ||
        clock_gettime(CLOCK_BOOTTIME, &boot) != 0) {
        return -1;
    }
    memset(ret_reading, 0, sizeof(*ret_reading));
    ret_reading->wall_ms = (int64_t)wall.tv_sec * 1000 + ahead_ms;
    ret_reading->boot_ms = (int64_t)boot.tv_sec * 1000;
    memset(ret_reading->boot_id, ahead_ms != 0 ? 'a' : 'b', 16);
    return 0;
}

static struct idem_store *open_ahead(const struct rig *rig)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_error error = {0};
    struct idem_store *store;

    options.host.clock = clock_ahead;
    if (idem_sqlite_open(rig->path, &options, &store, &error) != 0) {
        fprintf(stderr, "# %s\n", error.text);
        return NULL;
    }
    return store;
}

/* The time is what it was or set back, and whichever it is, what was done is. */
static const char *check_ahead(const struct rig *rig)
{
    struct idem_sqlite_info info = IDEM_SQLITE_INFO_INIT;
    struct idem_clock_reading reading;
    struct idem_store *store = open_ahead(rig);
    struct idem_answer *answer;
    const char *fault = NULL;

    if (store == NULL) {
        return "cannot open the store";
    }
    if (clock_ahead(NULL, &reading) != 0 ||
        idem_sqlite_inspect(store, &info, NULL) != 0 ||
        (info.known_ms > reading.wall_ms + DAY_MS &&
         info.known_ms < reading.wall_ms + AHEAD_MS - DAY_MS)) {
        fault = "the store's time is neither what it was nor set back";
    } else if (idem_get(store, idem_str(""), idem_str("done"), &answer, NULL) !=
               0) {
        fault = "what was done is forgotten";
    } else {
        fault = idem_answer_record(answer)->status == IDEM_STATUS_COMPLETED
                    ? NULL
                    : "what was done is not done";
        idem_answer_destroy(answer);
    }
    idem_close(store);
    return fault;
}

static void put_ahead(struct rig *rig)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt;
    struct idem_store *store;

    memset(&rig->start, 0, sizeof(rig->start));
    disk_save(&rig->start, rig->path);
    ahead_ms = AHEAD_MS;
    store = open_ahead(rig);
    request.key = idem_str("done");
    request.on_expired_lease = IDEM_RERUN;
    if (store == NULL || idem_begin(store, &request, &attempt, NULL) != 0 ||
        idem_complete(attempt, NULL, NULL) != 0) {
        abort();
    }
    idem_attempt_destroy(attempt);
    idem_close(store);
    ahead_ms = 0;
    disk_load(&rig->start, rig->path);
}

/* The power goes while the time of the store is set back. */
static void cut_the_setting(struct rig *rig, uint64_t *seed,
                            struct count *count)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_error error = {0};
    int64_t from_ms;
    int64_t to_ms;

    put_ahead(rig);
    options.host.clock = clock_ahead;
    disk_start(&rig->log);
    if (idem_sqlite_set_clock(rig->path, &options, &from_ms, &to_ms, &error) !=
            0 ||
        from_ms - to_ms < AHEAD_MS - DAY_MS) {
        fprintf(stderr, "powercut: set the clock: %s\n", error.text);
        abort();
    }
    disk_stop();
    cut_everywhere(rig, 0, check_ahead, seed, count);
    disk_log_free(&rig->log);
    disk_image_free(&rig->start);
}

static void report(int number, bool ok, const char *what,
                   const struct count *count)
{
    printf("%sok %d - %s\n", ok ? "" : "not ", number, what);
    printf("# %lu images (%lu cut again in recovery), %lu bad%s%s\n",
           count->images, count->again, count->bad,
           count->first != NULL ? ", the first: " : "",
           count->first != NULL ? count->first : "");
}

int main(void)
{
    unsigned long images = getenv("IDEM_TEST_LONG") != NULL ? 2500 : 100;
    struct count honest = {0};
    struct count no_sync = {0};
    struct count early = {0};
    struct count made = {0};
    struct count refused = {0};
    struct count marked = {0};
    struct count set = {0};
    unsigned long carried = 0;
    uint64_t seed;

    disk_install();
    for (seed = 1; seed <= SEEDS; seed++) {
        uint64_t random = seed;
        struct rig rig = {.directory = "/tmp/idem-powercut-XXXXXX"};
        char remove[128];
        size_t i;

        if (mkdtemp(rig.directory) == NULL) {
            abort();
        }
        /* A disk that claims nothing, or no more than most do. */
        vfs_plain(seed % 2 == 0);
        record(&rig, &random);
        for (i = 0; i < rig.log.len; i++) {
            carried += rig.log.events[i].kind == DISK_SYNC_BEGIN &&
                       rig.log.events[i].file == DISK_DB;
        }
        cut_all(&rig, images, CUT_HONEST, false, &random, &honest);
        cut_all(&rig, images / 10, CUT_NO_SYNC, false, &random, &no_sync);
        cut_all(&rig, images, CUT_HONEST, true, &random, &early);
        disk_log_free(&rig.log);
        disk_image_free(&rig.start);
        name_file(&rig, "made.db");
        cut_the_making(&rig, &random, &made);
        cut_the_mark(&rig, &random, &refused, &marked);
        cut_the_setting(&rig, &random, &set);
        (void)snprintf(remove, sizeof(remove), "rm -rf %s", rig.directory);
        if (system(remove) != 0) {
            abort();
        }
    }
    printf("1..8\n");
    report(1, honest.bad == 0, "after a cut what was answered is there",
           &honest);
    printf("%sok 2 - the stories carry the log over\n# %lu times\n",
           carried >= SEEDS ? "" : "not ", carried);
    report(3, no_sync.bad > 0, "the control without flushes loses", &no_sync);
    report(4, early.bad > 0, "the control that answers before its flush loses",
           &early);
    report(5, made.bad == 0, "a store that was being made is made", &made);
    report(6, marked.bad == 0, "what was marked is accepted", &marked);
    report(7, refused.bad == SEEDS,
           "the control: without the mark it is refused", &refused);
    report(8, set.bad == 0, "a store whose time was set back forgot nothing",
           &set);
    return made.bad == 0 && set.bad == 0 && marked.bad == 0 &&
                   refused.bad == SEEDS && honest.bad == 0 &&
                   carried >= SEEDS && no_sync.bad > 0 && early.bad > 0
               ? 0
               : 1;
}
