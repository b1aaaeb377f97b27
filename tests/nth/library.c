/* ROW(37, 40, 41) The n-th call below a library program fails: once, for ever, and
 * with a death soon after. Each story is told again and again, with another n,
 * until none of its calls fails any more. What was answered is then true of the
 * store, its handle works again, and no memory is left over. */
#include "story.h"

#include "nth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What one kind of call answers when it fails. */
static const struct {
    enum nth_class class;
    int error;
} faults[] = {
    {NTH_ALLOC, ENOMEM},  {NTH_OPEN, EMFILE},     {NTH_READ, EIO},
    {NTH_WRITE, EIO},     {NTH_WRITE, ENOSPC},    {NTH_SYNC, EIO},
    {NTH_TRUNCATE, EIO},  {NTH_TRUNCATE, ENOSPC}, {NTH_STAT, EIO},
    {NTH_LOCK, ENOLCK},   {NTH_MAP, ENOMEM},      {NTH_CLOCK, EPERM},
    {NTH_RANDOM, ENOSYS}, {NTH_THREAD, EAGAIN},   {NTH_CHANGE, EPERM},
};

static const struct mode {
    const char *name;
    bool on;
    bool dies;
} modes[] = {
    {"once", false, false},
    {"for ever", true, false},
    {"once, then killed", false, true},
    {"for ever, then killed", true, true},
};

enum {
    MODES = sizeof(modes) / sizeof(modes[0]),
    FAULTS = sizeof(faults) / sizeof(faults[0]),
    EVERY_UNTIL = 6, /* From here on a short run leaves some out. */
    PATIENCE_S = 120,
};

/* What the parent and the child, which may die, have in common. */
struct shared {
    struct nth_page page;
    struct told told;
    bool finished;
};

struct tally {
    long tried;
    long failed; /* Calls. */
    long killed;
    long last; /* The greatest n that was reached. */
    long bad;
    char first[400];
};

static struct shared *shared;
static char directory[256];
static char path[280];
static bool is_long;

/* What the story's child is to suffer. */
static struct {
    enum nth_class class;
    int64_t n;
    bool on;
    int error;
} plan;

void story_arm(void)
{
    nth_fail(plan.class, plan.n, plan.on, plan.error);
}

void story_disarm(void)
{
    nth_stop();
}

/* ---- Files ------------------------------------------------------------- */

/* The database, its log, and the lock file, which knows it. */
static const char *const endings[] = {"", "-wal", "-lock", "-shm"};

static void name_of(char buf[300], const char *stem, size_t i)
{
    (void)snprintf(buf, 300, "%s/%s%s", directory, stem, endings[i]);
}

static void remove_store(const char *stem)
{
    size_t i;

    for (i = 0; i < 4; i++) {
        char name[300];

        name_of(name, stem, i);
        (void)unlink(name);
    }
}

/* The rest is made anew. */
static void copy_store(const char *from, const char *to)
{
    static char bytes[1 << 20];
    size_t i;

    remove_store(to);
    for (i = 0; i < 3; i++) {
        char name[300];
        ssize_t len;
        int fd;

        name_of(name, from, i);
        fd = open(name, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            continue;
        }
        len = read(fd, bytes, sizeof(bytes));
        (void)close(fd);
        name_of(name, to, i);
        fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (len < 0 || fd < 0 || write(fd, bytes, (size_t)len) != len) {
            abort();
        }
        (void)close(fd);
    }
}

/* ---- One telling ------------------------------------------------------- */

static void live(const struct story *story)
{
    (void)alarm(PATIENCE_S);
    nth_use(&shared->page);
    story_live(story, path, &shared->told);
    nth_use(NULL);
    (void)strcpy(shared->told.text, story_why.text);
    shared->told.blocks = shared->page.blocks;
    shared->finished = true;
}

/* In a child, because it may die. Its wait status. */
static int live_apart(const struct story *story)
{
    int status = 0;
    pid_t pid = fork();

    if (pid < 0) {
        abort();
    }
    if (pid == 0) {
        live(story);
        _exit(0);
    }
    (void)waitpid(pid, &status, 0);
    return status;
}

/* What was answered where nothing was done must not be said of a handle that is
 * well again. */
static const char *judge_handle(const struct told *told)
{
    if (told->after > 0) {
        return NULL; /* It did not come to that. */
    }
    return told->after == 0 ? NULL : "the handle does not work again";
}

static const char *judge_store(const struct story *story,
                               const struct told *told)
{
    struct idem_store *store;
    const char *bad;

    if (story->judge_file != NULL) {
        return story->judge_file(path, told);
    }
    if (story_open_after(path, &store) != 0) {
        (void)strcpy(shared->told.text, story_why.text);
        return "the store does not open again";
    }
    bad = story_verdict(story, store, told);
    idem_close(store);
    return bad;
}

static const char *judge(const struct story *story, int status)
{
    const struct told *told = &shared->told;
    const char *bad;

    if (!shared->finished && shared->page.killed == 0) {
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM
                   ? "it hangs"
                   : "it crashed";
    }
    if (shared->finished && told->blocks != 0) {
        return "memory was not given back";
    }
    bad = shared->finished ? judge_handle(told) : NULL;
    return bad != NULL ? bad : judge_store(story, told);
}

/* True if a call failed. */
static bool tell(const struct story *story, const struct mode *mode, long n,
                 struct tally *tally)
{
    static const int32_t deaths[] = {0, 1, 2, 3, 5, 9, 17, 40};
    const char *bad;
    int status;

    if (story->prepare != NULL) {
        copy_store("template", "store");
    } else {
        remove_store("store");
    }
    memset(shared, 0, sizeof(*shared));
    shared->told.open = shared->told.begin = STORY_NOT_ASKED;
    shared->told.end = shared->told.after = STORY_NOT_ASKED;
    shared->page.kill = mode->dies ? deaths[n % 8] : -1;
    shared->page.left = -1;
    plan.n = n;
    plan.on = mode->on;

    status = live_apart(story);
    bad = judge(story, status);

    tally->tried++;
    tally->failed += shared->page.failed;
    tally->killed += shared->page.killed != 0;
    if (bad != NULL && tally->bad++ == 0) {
        const struct told *told = &shared->told;

        (void)snprintf(tally->first, sizeof(tally->first),
                       "n = %ld: %s (open %d, begin %d, end %d, after %d, "
                       "blocks %ld; %s)",
                       n, bad, told->open, told->begin, told->end, told->after,
                       (long)told->blocks, told->text);
    }
    return shared->page.failed > 0 || shared->page.killed != 0;
}

static void tell_all(const struct story *story, const struct mode *mode,
                     struct tally *tally)
{
    long n = 0;

    memset(tally, 0, sizeof(*tally));
    while (tell(story, mode, n, tally)) {
        tally->last = n + 1;
        n += is_long || n < EVERY_UNTIL ? 1 : 1 + n / (mode->dies ? 2 : 4);
    }
}

/* ---- All of them ------------------------------------------------------- */

static void make_template(const struct story *story)
{
    char name[300];

    remove_store("template");
    if (story->prepare != NULL) {
        name_of(name, "template", 0);
        story->prepare(name);
    }
    /* What is allocated once is allocated before it counts. */
    copy_store("template", "store");
    memset(shared, 0, sizeof(*shared));
    shared->page.left = -1;
    plan.n = -1;
    nth_use(&shared->page);
    story_live(story, path, &shared->told);
    nth_use(NULL);
}

/* All modes of one fault in one story: a scenario, if there is such a call. */
static void run_scenario(const struct story *story, size_t fault,
                         unsigned *number, struct tally *total)
{
    struct tally tally;
    size_t i;

    plan.class = faults[fault].class;
    plan.error = faults[fault].error;
    for (i = 0; i < MODES; i++) {
        tell_all(story, &modes[i], &tally);
        if (tally.last == 0) {
            return;
        }
        printf("%sok %u - %s, %s fails %s (%s)\n", tally.bad > 0 ? "not " : "",
               ++*number, story->name, nth_name((int)plan.class), modes[i].name,
               strerrorname_np(plan.error));
        printf("# %ld of %ld moments; %ld calls failed, %ld deaths\n",
               tally.tried - 1, tally.last, tally.failed, tally.killed);
        if (tally.bad > 0) {
            printf("# %ld bad; first: %s\n", tally.bad, tally.first);
        }
        (void)fflush(stdout);
        total->tried += tally.tried;
        total->failed += tally.failed;
        total->killed += tally.killed;
        total->bad += tally.bad;
    }
}

static void run_story(const struct story *story, unsigned *number,
                      struct tally *total)
{
    size_t i;

    make_template(story);
    for (i = 0; i < FAULTS; i++) {
        run_scenario(story, i, number, total);
    }
}

static void make_directory(void)
{
    (void)snprintf(directory, sizeof(directory), "%s/idem-nth-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(directory) == NULL) {
        abort();
    }
    (void)snprintf(path, sizeof(path), "%s/store", directory);
}

static const struct {
    const char *name;
    const struct story *stories;
} groups[] = {
    {"claims", stories_claims},
    {"owners", stories_owners},
    {"operator", stories_operator},
};

/* library GROUP [PART OF A STORY'S NAME] */
int main(int argc, char **argv)
{
    const char *only = argc > 2 ? argv[2] : NULL;
    struct tally total = {0};
    unsigned number = 0;
    size_t i;

    is_long = getenv("IDEM_TEST_LONG") != NULL;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        abort();
    }
    make_directory();
    for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        const struct story *story = groups[i].stories;

        if (argc > 1 && strcmp(argv[1], groups[i].name) != 0) {
            continue;
        }
        for (; story->name != NULL; story++) {
            if (only == NULL || strstr(story->name, only) != NULL) {
                run_story(story, &number, &total);
            }
        }
    }
    remove_store("template");
    remove_store("store");
    (void)rmdir(directory);
    printf("1..%u\n", number);
    printf("# %u scenarios and modes, %ld times; %ld calls failed, %ld deaths, "
           "%ld bad\n",
           number, total.tried, total.failed, total.killed, total.bad);
    return total.bad == 0 && number > 0 ? 0 : 1;
}
