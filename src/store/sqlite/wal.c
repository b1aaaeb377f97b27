/* Reports how long the log is, and which process keeps it from shrinking. */
#include "core/error.h"
#include "store/sqlite/store.h"

#include <idem/sqlite.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Finds the process that keeps the log from shrinking.
 *
 * Each reader holds a shared record lock on one of five bytes of PATH-shm
 * (https://sqlite.org/walformat.html, 2.2.1: WAL_READ_LOCK(0) to (4) at 123). A reader
 * that began when all of the log had been copied reads only the file, and holds the first
 * of these locks: meanwhile no page may be copied into the file. The kernel lists the
 * locks in /proc/locks. To ask for them with F_GETLK would take a descriptor of PATH-shm,
 * and closing it would drop the locks of every connection of this process. */

/* The name of a process, cut to what the kernel keeps (proc_pid_comm(5)). */
enum {
    IDEM__PROCESS_NAME_LEN = 16
};

enum {
    FIRST_BYTE = 123,
    LAST_BYTE = 127,
    LOOKS = 5,
    BETWEEN_LOOKS_MS = 50,
    READERS_MAX = 64,
    LINE_LEN = 256,
};

struct readers {
    pid_t pids[READERS_MAX];
    size_t len;
};

/* Reads a line of proc_locks(5): "3: POSIX  ADVISORY  READ 4711 fe:00:262158 124 124". A
 * process that only waits for a lock has "->" after the number, and does not match. */
static bool is_reader(const char *line, ino_t inode, pid_t *ret_pid)
{
    unsigned long long ino;
    unsigned long long first;
    unsigned long long last;
    int pid;

    if (sscanf(line, "%*u: POSIX %*s READ %d %*x:%*x:%llu %llu %llu", &pid,
               &ino, &first, &last) != 4) {
        return false;
    }
    *ret_pid = (pid_t)pid;
    return ino == inode && first >= FIRST_BYTE && last <= LAST_BYTE &&
           pid > 0 && *ret_pid != getpid();
}

static void look(ino_t inode, struct readers *ret_readers)
{
    FILE *locks = fopen("/proc/locks", "re");
    char line[LINE_LEN];
    pid_t pid;

    ret_readers->len = 0;
    if (locks == NULL) {
        return;
    }
    while (ret_readers->len < READERS_MAX &&
           fgets(line, sizeof(line), locks) != NULL) {
        if (is_reader(line, inode, &pid)) {
            ret_readers->pids[ret_readers->len++] = pid;
        }
    }
    (void)fclose(locks);
}

static bool is_among(const struct readers *readers, pid_t pid)
{
    size_t i;

    for (i = 0; i < readers->len; i++) {
        if (readers->pids[i] == pid) {
            return true;
        }
    }
    return false;
}

static void keep_those_of(struct readers *readers, const struct readers *again)
{
    size_t kept = 0;
    size_t i;

    for (i = 0; i < readers->len; i++) {
        if (is_among(again, readers->pids[i])) {
            readers->pids[kept++] = readers->pids[i];
        }
    }
    readers->len = kept;
}

static void read_name(pid_t pid, char ret_name[IDEM__PROCESS_NAME_LEN])
{
    char path[64];
    FILE *file;

    (void)strcpy(ret_name, "?");
    (void)snprintf(path, sizeof(path), "/proc/%ld/comm", (long)pid);
    file = fopen(path, "re");
    if (file != NULL) {
        if (fgets(ret_name, IDEM__PROCESS_NAME_LEN, file) != NULL) {
            ret_name[strcspn(ret_name, "\n")] = '\0';
        }
        (void)fclose(file);
    }
}

/* Finds a process that is in the log of the database @path at each of LOOKS looks, a
 * fifth of a second in all. Sets *@ret_pid and its name. False: there is none, or none of
 * this PID namespace. */
static bool find_reader(const char *path, pid_t *ret_pid,
                        char ret_name[IDEM__PROCESS_NAME_LEN])
{
    const struct timespec pause = {.tv_nsec = BETWEEN_LOOKS_MS * 1000000L};
    char shm[IDEM__PATH_MAX + 8];
    struct readers readers;
    struct readers again;
    struct stat st;
    int looks;

    (void)snprintf(shm, sizeof(shm), "%s-shm", path);
    if (stat(shm, &st) != 0) {
        return false;
    }
    look(st.st_ino, &readers);
    for (looks = 1; looks < LOOKS && readers.len > 0; looks++) {
        (void)nanosleep(&pause, NULL);
        look(st.st_ino, &again);
        keep_those_of(&readers, &again);
    }
    if (readers.len == 0) {
        return false;
    }
    *ret_pid = readers.pids[0];
    read_name(*ret_pid, ret_name);
    return true;
}

/* ---- The length of the log ----------------------------------------------- */

enum {
    LONG_LOG = 32 << 20, /* Bytes; four times what starts a checkpoint. */
    FRAME_HEAD = 24,     /* Bytes; https://sqlite.org/fileformat2.html, 4.1. */
};

/* Reads the length of the log in a new transaction, with which SQLite looks anew how long
 * the log is. */
static int read_len(struct idem__conn *conn, uint64_t *ret_len)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(
        conn->db,
        "SELECT page_size FROM pragma_page_size, idem_clock WHERE one = 1", -1,
        &stmt, NULL);

    *ret_len = 0;
    if (rc == SQLITE_OK) {
        rc = idem__conn_step(conn, stmt);
    }
    if (rc == SQLITE_ROW) {
        *ret_len = (uint64_t)idem__sqlite_log_frames(conn) *
                   ((uint64_t)sqlite3_column_int64(stmt, 0) + FRAME_HEAD);
        rc = SQLITE_OK;
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

int idem_sqlite_log(struct idem_store *store,
                    struct idem_sqlite_log_info *ret_log,
                    struct idem_error *ret_error)
{
    struct idem__sqlite_store *s = (struct idem__sqlite_store *)store;
    struct idem_sqlite_log_info log = IDEM_SQLITE_LOG_INFO_INIT;
    struct idem__conn *conn;
    pid_t pid;
    int rc;

    if (ret_log->size != sizeof(*ret_log)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "log: begin with IDEM_SQLITE_LOG_INFO_INIT");
    }
    rc = idem__sqlite_reader(store, &conn, ret_error);
    if (rc != 0) {
        return rc;
    }
    idem__sqlite_before_read(s);
    rc = read_len(conn, &log.len);
    if (rc != SQLITE_OK) {
        rc = idem__conn_fail(conn, rc, "read the length of the log", ret_error);
    }
    idem__readers_give(s, conn);
    if (rc != 0) {
        return rc;
    }
    if (log.len >= LONG_LOG && find_reader(s->path, &pid, log.process)) {
        log.pid = (int64_t)pid;
    }
    *ret_log = log;
    return 0;
}
