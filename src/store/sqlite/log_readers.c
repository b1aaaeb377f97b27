/* Which process keeps the log from shrinking.
 *
 * Each reader holds a shared record lock on one of five bytes of PATH-shm
 * (https://sqlite.org/walformat.html, 2.2.1: WAL_READ_LOCK(0) to (4) at 123). One
 * that began when all of the log had been copied reads the file alone, and holds the
 * first of them: no page may be copied there then. The kernel lists them in /proc/locks. To ask for them with F_GETLK would
 * take a descriptor of that file, and to close it would drop the locks of every
 * connection of this process.
 */
#include "store/sqlite/log_readers.h"

#include "store/sqlite/place.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

/* "3: POSIX  ADVISORY  READ 4711 fe:00:262158 124 124" (proc_locks(5)); one that
 * waits has "->" after the number, and holds nothing. */
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

bool idem__log_reader(const char *path, pid_t *ret_pid,
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
