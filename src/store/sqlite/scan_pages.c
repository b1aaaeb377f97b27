/* How the pages of the file hang together, by SQLite's own check.
 *
 * Whether a page belongs to two trees, or to one and to the free ones, is only seen
 * by reading all trees of one moment: "PRAGMA quick_check" does, in one transaction,
 * which keeps the log from shrinking. So the thread that was called looks on, and
 * ends it when the log has grown by LOG_GROWTH. */
#include "store/sqlite/scan.h"

#include "base/thread.h"
#include "core/error.h"

#include <idem/check.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum {
    LOG_GROWTH = 32 << 20, /* Bytes. */
    LOOK_MS = 50,
    DAMAGES_MAX = 3, /* That are told one by one. */
    TEXT_LEN = 400,
};

struct job {
    struct idem__conn *conn;
    const struct idem__scan_indexes *indexes;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t over;
    bool is_over;
    int rc;
    int damages;
    char texts[DAMAGES_MAX][TEXT_LEN];
};

/* A newer SQLite counts the entries of indexes here (3.53 does, 3.40 does not). Those
 * of the records were compared one by one, and what is wrong with them was told with
 * another remedy than to put back a copy. */
static bool is_of_compared_index(const struct job *job, const char *text)
{
    static const char count[] = "wrong # of entries in index ";
    int i;

    if (strncmp(text, count, sizeof(count) - 1) != 0) {
        return false;
    }
    for (i = 0; i < job->indexes->len; i++) {
        if (strcmp(text + sizeof(count) - 1, job->indexes->at[i].name) == 0) {
            return true;
        }
    }
    return false;
}

static void note(struct job *job, const char *text)
{
    if (text != NULL && strcmp(text, "ok") != 0 &&
        !is_of_compared_index(job, text) && job->damages < DAMAGES_MAX) {
        (void)snprintf(job->texts[job->damages++], TEXT_LEN, "%s", text);
    }
}

static void *read_pages(void *arg)
{
    struct job *job = arg;
    sqlite3_stmt *stmt = NULL;
    char sql[64];
    int rc;

    (void)snprintf(sql, sizeof(sql), "PRAGMA quick_check(%d)",
                   DAMAGES_MAX + job->indexes->len);
    rc = sqlite3_prepare_v2(job->conn->db, sql, -1, &stmt, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = idem__conn_step(job->conn, stmt);
        if (rc == SQLITE_ROW) {
            note(job, (const char *)sqlite3_column_text(stmt, 0));
        }
    }
    (void)sqlite3_finalize(stmt);
    (void)pthread_mutex_lock(&job->mutex);
    job->rc = rc;
    job->is_over = true;
    (void)pthread_cond_signal(&job->over);
    (void)pthread_mutex_unlock(&job->mutex);
    return NULL;
}

static bool wait_for(struct job *job)
{
    struct timespec until = {.tv_sec = 0}; /* Over, should the clock fail. */
    bool is_over;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    (void)pthread_mutex_lock(&job->mutex);
    /* Any refusal ends the wait, for it may have kept the mutex. */
    while (!job->is_over &&
           pthread_cond_timedwait(&job->over, &job->mutex, &until) == 0) {
    }
    is_over = job->is_over;
    (void)pthread_mutex_unlock(&job->mutex);
    return is_over;
}

static int64_t log_len(const struct idem__scan *scan)
{
    char name[IDEM__PATH_MAX + 8];
    struct stat st;

    (void)snprintf(name, sizeof(name), "%s-wal", scan->store->path);
    return stat(name, &st) == 0 ? (int64_t)st.st_size : 0;
}

enum reason {
    READ,
    STOPPED,
    LOG_GREW,
};

/* Until it is over or interrupted; says why. The file of the log does not shrink
 * meanwhile, and is only longer where others append. */
static enum reason look_on(const struct idem__scan *scan, struct job *job,
                           uint64_t done, uint64_t all)
{
    const struct idem_check_options *options = scan->options;
    int64_t log = log_len(scan);
    enum reason reason = READ;

    while (!wait_for(job)) {
        if (reason == READ && options->progress != NULL &&
            options->progress(options->ctx, done, all) != 0) {
            reason = STOPPED;
        }
        if (reason == READ && log_len(scan) - log > LOG_GROWTH) {
            reason = LOG_GREW;
        }
        if (reason != READ) { /* Again: it may have met no statement. */
            sqlite3_interrupt(job->conn->db);
        }
    }
    return reason;
}

static void tell(const struct idem__scan *scan, const struct job *job,
                 enum reason reason)
{
    struct idem_error error;
    int i;

    for (i = 0; i < job->damages; i++) {
        (void)idem__error(&error, IDEM_ECORRUPT, "the file is damaged: %s",
                          job->texts[i]);
        idem__found_error(&scan->to, "file", IDEM__SCAN_PUT_BACK, &error);
    }
    if (job->rc == SQLITE_INTERRUPT && reason == LOG_GREW) {
        idem__found(&scan->to, IDEM_GRADE_SKIP, "file",
                    "Check once more while less is written.",
                    "how its pages hang together was not looked at to the end: "
                    "others wrote %d MiB to the log meanwhile, which could not "
                    "shrink",
                    LOG_GROWTH >> 20);
    } else if (job->rc == SQLITE_INTERRUPT) {
        idem__found(&scan->to, IDEM_GRADE_SKIP, "file", /* mend= */ NULL,
                    "how its pages hang together was not looked at to the end");
    } else if (job->rc != SQLITE_DONE) {
        idem__scan_failed(scan, job->rc, "check the file");
    } else if (job->damages == 0) {
        idem__found(&scan->to, IDEM_GRADE_OK, "file", /* mend= */ NULL,
                    "it is whole: %llu pages, %llu bytes, and %llu in the log",
                    (unsigned long long)scan->info->pages,
                    (unsigned long long)scan->info->file_len,
                    (unsigned long long)scan->info->wal_len);
    }
}

bool idem__scan_pages(const struct idem__scan *scan, uint64_t done,
                      uint64_t all)
{
    struct job job = {.conn = scan->conn,
                      .indexes = &scan->indexes,
                      .mutex = PTHREAD_MUTEX_INITIALIZER,
                      .over = PTHREAD_COND_INITIALIZER};
    enum reason reason;
    int rc = idem__thread_start(&job.thread, read_pages, &job);

    if (rc != 0) {
        idem__found(&scan->to, IDEM_GRADE_SKIP, "file", /* mend= */ NULL,
                    "how its pages hang together was not looked at: %s",
                    strerror(rc));
        return true;
    }
    reason = look_on(scan, &job, done, all);
    (void)pthread_join(job.thread, NULL);
    tell(scan, &job, reason);
    (void)pthread_cond_destroy(&job.over);
    (void)pthread_mutex_destroy(&job.mutex);
    return reason != STOPPED;
}
