/* The hook behind the crash points: counts, and kills or stops the process.
 *
 * IDEM_STORM_HITS names a file of slots, one for each point. IDEM_STORM_DIE is
 * "POINT:N,POINT:N,...": the process that comes to POINT for the Nth time since
 * it, or the one it was forked from, began is killed there. IDEM_STORM_STOP is
 * the same for SIGSTOP. The file is mapped and shared, so that what was counted
 * outlives who counted it. */
#include "base/crash.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ENDS_MAX = 8
};

struct slot {
    char name[48];
    uint64_t hits;
    uint64_t kills;
};

struct end {
    char name[48];
    unsigned left;
    int signo;
};

static struct slot *slots;
static size_t slots_len;
static struct end ends[ENDS_MAX];
static size_t ends_len;

static void map_slots(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) != 0) {
        abort();
    }
    slots = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
                 fd, 0);
    if (slots == MAP_FAILED) {
        abort();
    }
    slots_len = (size_t)st.st_size / sizeof(*slots);
    (void)close(fd);
}

static void read_ends(const char *text, int signo)
{
    while (text != NULL && ends_len < ENDS_MAX &&
           sscanf(text, "%47[^:]:%u", ends[ends_len].name,
                  &ends[ends_len].left) == 2) {
        ends[ends_len++].signo = signo;
        text = strchr(text, ',');
        text = text == NULL ? NULL : text + 1;
    }
}

/* Before main(): no thread, and no child that shares our memory, comes first. */
__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("IDEM_STORM_HITS");

    if (path != NULL) {
        map_slots(path);
        read_ends(getenv("IDEM_STORM_DIE"), SIGKILL);
        read_ends(getenv("IDEM_STORM_STOP"), SIGSTOP);
    }
}

static struct slot *find(const char *name)
{
    size_t i;

    for (i = 0; i < slots_len; i++) {
        if (strcmp(slots[i].name, name) == 0) {
            return &slots[i];
        }
    }
    (void)fprintf(stderr, "storm: no slot for the crash point %s\n", name);
    abort();
}

static void stop_here(struct slot *slot, int signo)
{
    if (signo == SIGKILL) {
        (void)__atomic_fetch_add(&slot->kills, 1, __ATOMIC_RELAXED);
    }
    (void)kill(getpid(), signo);
}

void idem__crash_point(const char *name)
{
    struct slot *slot;
    size_t i;

    if (slots == NULL) {
        return;
    }
    slot = find(name);
    (void)__atomic_fetch_add(&slot->hits, 1, __ATOMIC_RELAXED);
    for (i = 0; i < ends_len; i++) {
        if (strcmp(ends[i].name, name) == 0 &&
            __atomic_fetch_sub(&ends[i].left, 1, __ATOMIC_RELAXED) == 1) {
            stop_here(slot, ends[i].signo);
        }
    }
}
