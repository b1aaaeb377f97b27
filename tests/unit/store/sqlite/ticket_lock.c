/* The lock between processes: one holder at a time, everybody in turn, and nobody
 * waits for the dead. */
#include "store/sqlite/place.h"

#include "temp.h"
#include "test.h"
#include "threads.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    PROCESSES = 4,
    HOLD_US = 300,
    NEXT_AT = 512, /* Where the file has the next ticket. */
    WORDS_LEN = 272,
    AT_HEAD_AT = 264, /* In the words: how many wait at the head of the line. */
    LONG = 24,        /* A line of so many is long. */
    PATIENCE_MS = 60000,
    AT_ONCE_MS = 25000 /* On a machine that may stand still. */
};

/* What the processes of a test share. */
struct shared {
    unsigned turns[16];
    unsigned doubled; /* Times that two held the lock. */
    unsigned failed;
    unsigned ready; /* That take turns from now on. */
    int stop;
    long long at_ms[LONG + 2]; /* When each had it first. */
    unsigned order[LONG + 2];  /* The how manieth it was. */
    unsigned taken;            /* By so many until now. */
    bool ends;                 /* Somebody in line has something to end. */
    long looks;                /* Of the last in line, */
    long long looked_ms;       /* and how long it waited. */
};

static const struct idem__share plain = {0600, (uid_t)-1, (gid_t)-1};
static struct shared *shared;
static const char *path;
static const char *witness_path;

/* Of a process: the lock, and a second one, which whoever has the first can always
 * have: the kernel drops it first when a process dies, because its descriptor is the
 * lower one. */
static struct idem__lock *lock;
static int witness;

static void set_up(void)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    path = temp_path("lock");
    witness_path = temp_path("witness");
}

static void tear_down(void)
{
    assert_int_equal(shared->doubled, 0);
    assert_int_equal(shared->failed, 0);
    (void)munmap(shared, sizeof(*shared));
}

#define TEST_LINE(suite, condition)                                            \
    TEST_BETWEEN(suite, condition, set_up(), tear_down())

static void pause_us(long us)
{
    struct timespec ts = {0, us * 1000};

    (void)nanosleep(&ts, NULL);
}

static bool set_byte(int fd, short type)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};

    return fcntl(fd, F_SETLK, &range) == 0;
}

/* Opens what a process of a test has. */
static void open_locks(void)
{
    witness = open(witness_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (idem__lock_open(path, &plain, &lock, NULL) != 0) {
        _exit(9);
    }
}

/* Looks for others that have the lock. */
static void note_double(void)
{
    if (!set_byte(witness, F_WRLCK)) {
        (void)__atomic_add_fetch(&shared->doubled, 1, __ATOMIC_RELAXED);
    }
}

/* Takes the lock within a minute, alone. */
static void take(void)
{
    if (idem__lock_acquire(lock, now_ms() + PATIENCE_MS, NULL) != 0) {
        (void)__atomic_add_fetch(&shared->failed, 1, __ATOMIC_RELAXED);
        _exit(8);
    }
    note_double();
}

static void give(void)
{
    (void)set_byte(witness, F_UNLCK);
    idem__lock_release(lock);
}

static pid_t start(void (*work)(unsigned i), unsigned i)
{
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        /* A test that fails leaves nobody behind. */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        open_locks();
        work(i);
        _exit(0);
    }
    return pid;
}

static void end(pid_t pid, int signal_number)
{
    int status;

    if (signal_number != 0) {
        (void)kill(pid, signal_number);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void words(void *buf)
{
    int fd = open(path, O_RDWR);

    memset(buf, 0, WORDS_LEN);
    if (fd >= 0) {
        (void)!pread(fd, buf, WORDS_LEN, NEXT_AT);
        (void)close(fd); /* This process has no lock on it. */
    }
}

/* How many tickets were taken. */
static uint32_t tickets(void)
{
    uint32_t buf[WORDS_LEN / 4];

    words(buf);
    return buf[0];
}

static uint32_t at_head(void)
{
    uint32_t buf[WORDS_LEN / 4];

    words(buf);
    return buf[AT_HEAD_AT / 4];
}

static void wait_for_ticket(uint32_t n)
{
    while ((int32_t)(tickets() - n) < 0) {
        sleep_ms(1);
    }
}

/* ---- Fairness ---- */

static void take_turns(unsigned i)
{
    (void)__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELAXED);
    while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
        take();
        pause_us(HOLD_US);
        shared->turns[i]++;
        give();
    }
}

/* The same, as a lock without order is taken. */
static void snatch(unsigned i)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);

    (void)__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELAXED);
    while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
        if (!set_byte(fd, F_WRLCK)) {
            pause_us(1000);
            continue;
        }
        pause_us(HOLD_US);
        shared->turns[i]++;
        (void)set_byte(fd, F_UNLCK);
    }
}

static void wait_until_ready(void)
{
    long long end_ms = now_ms() + AT_ONCE_MS;

    while (__atomic_load_n(&shared->ready, __ATOMIC_RELAXED) < PROCESSES &&
           now_ms() < end_ms) {
        sleep_ms(1);
    }
}

/* Waits until each of @n processes had @more turns than it has in @before, or it is
 * plain that one does not come to it. */
static void wait_for_turns(const unsigned *before, unsigned n, unsigned more)
{
    long long end_ms = now_ms() + AT_ONCE_MS;
    unsigned i = 0;

    while (i < n && now_ms() < end_ms) {
        if (__atomic_load_n(&shared->turns[i], __ATOMIC_RELAXED) - before[i] >=
            more) {
            i++;
        } else {
            sleep_ms(1);
        }
    }
}

/* What each had since. */
static void subtract(const unsigned *before, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        shared->turns[i] -= before[i];
    }
}

/* Runs processes for @ms from when all are ready; the share of the slowest, in
 * percent. */
static unsigned share_of_slowest(void (*work)(unsigned i), long ms)
{
    unsigned before[PROCESSES];
    pid_t pids[PROCESSES];
    unsigned all = 0;
    unsigned least = ~0u;
    unsigned i;

    shared->stop = 0;
    shared->ready = 0;
    for (i = 0; i < PROCESSES; i++) {
        pids[i] = start(work, i);
    }
    wait_until_ready();
    memcpy(before, shared->turns, sizeof(before));
    /* When the machine stands still, one of the ten is over without a turn. */
    for (i = 0; i < 10; i++) {
        sleep_ms(ms / 10);
    }
    __atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
    for (i = 0; i < PROCESSES; i++) {
        end(pids[i], 0);
    }
    subtract(before, PROCESSES);
    for (i = 0; i < PROCESSES; i++) {
        all += shared->turns[i];
        least = shared->turns[i] < least ? shared->turns[i] : least;
    }
    return all == 0 ? 0 : 100 * least / all;
}

/* Of four processes that want the lock all the time each has its share. */
TEST_LINE(turns, areFair)
{
    assert_true(share_of_slowest(take_turns, 1000) >= 15);
}

/* The control: whoever lets go and takes again before the others look has the
 * lock nearly always. Not on every machine at every moment. */
TEST_LINE(turns, wouldNotBeFairWithoutALine)
{
    unsigned rounds = 20;

    while (share_of_slowest(snatch, 1000) >= 15) {
        assert_true(--rounds > 0);
    }
}

/* ---- Deaths ---- */

static void hold(unsigned i)
{
    take();
    shared->at_ms[i] = now_ms();
    while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
        sleep_ms(1);
    }
    give();
}

static void note_order(unsigned i)
{
    shared->order[i] = __atomic_add_fetch(&shared->taken, 1, __ATOMIC_RELAXED);
    shared->at_ms[i] = now_ms();
}

static void take_once(unsigned i)
{
    take();
    note_order(i);
    give();
}

/* The holder has a child, which has what it had open, and outlives it. */
static void hold_with_sleeper(unsigned i)
{
    take();
    if (fork() == 0) {
        shared->turns[i] = (unsigned)getpid();
        sleep_ms(PATIENCE_MS);
        _exit(0);
    }
    shared->at_ms[i] = now_ms();
    sleep_ms(PATIENCE_MS);
}

static void wait_until_held(unsigned i)
{
    while (__atomic_load_n(&shared->at_ms[i], __ATOMIC_RELAXED) == 0) {
        sleep_ms(1);
    }
}

/* A holder, pids[0], and @n in line; shared->stop ends the hold. */
static void form_crowd(pid_t *pids, unsigned n)
{
    unsigned i;

    pids[0] = start(hold, 0);
    wait_until_held(0);
    for (i = 1; i <= n; i++) {
        uint32_t before = tickets();

        pids[i] = start(take_once, i);
        wait_for_ticket(before + 1);
    }
}

static void assert_at_once(unsigned i, long long since_ms)
{
    long long took_ms = shared->at_ms[i] - since_ms;

    assert_true(shared->at_ms[i] != 0);
    assert_in_time(took_ms, AT_ONCE_MS);
}

/* The holder is killed, or those in line are, first, in the middle, or all but the last:
 * each that is left has the lock at once. */
TEST(death, holdsNobodyUp)
{
    static const struct {
        unsigned killed; /* Of those in line. */
        int holder;      /* The signal that ends it; 0: it lets go. */
    } rows[] = {{0, SIGKILL}, {0x2, 0}, {0x4, 0}, {0x6, 0}, {0xa, 0}, {0xe, 0}};

    EACH(row, rows) {
        long long since_ms;
        pid_t pids[5];
        unsigned i;

        set_up();
        form_crowd(pids, 4);
        for (i = 1; i < 5; i++) {
            if ((row->killed & 1u << i) != 0) {
                end(pids[i], SIGKILL);
            }
        }
        since_ms = now_ms();
        __atomic_store_n(&shared->stop, row->holder == 0, __ATOMIC_RELAXED);
        end(pids[0], row->holder);
        for (i = 1; i < 5; i++) {
            if ((row->killed & 1u << i) == 0) {
                end(pids[i], 0);
                assert_at_once(i, since_ms);
            }
        }
        tear_down();
    }
}

/* One that is stopped when its turn comes is passed over, and has it later. */
TEST_LINE(death, isNotTheSameAsAStop)
{
    siginfo_t stopped;
    long long since_ms;
    pid_t pids[5];
    unsigned i;

    form_crowd(pids, 4);
    assert_int_equal(kill(pids[1], SIGSTOP), 0);
    assert_int_equal(waitid(P_PID, (id_t)pids[1], &stopped,
                            WSTOPPED | WEXITED | WNOWAIT),
                     0);
    assert_int_equal(stopped.si_code, CLD_STOPPED);
    since_ms = now_ms();
    __atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
    end(pids[0], 0);
    for (i = 2; i < 5; i++) {
        end(pids[i], 0);
        assert_at_once(i, since_ms);
    }
    assert_true(shared->at_ms[1] == 0);
    since_ms = now_ms();
    assert_int_equal(kill(pids[1], SIGCONT), 0);
    end(pids[1], 0);
    assert_at_once(1, since_ms);
}

/* The lock goes with its holder, not with a child that the holder left behind. */
TEST_LINE(death, doesNotLeaveTheLockToAChild)
{
    long long since_ms;
    pid_t pid;
    pid_t waiter;

    pid = start(hold_with_sleeper, 0);
    wait_until_held(0);
    waiter = start(take_once, 1);
    wait_for_ticket(2);
    since_ms = now_ms();
    end(pid, SIGKILL);
    end(waiter, 0);
    assert_at_once(1, since_ms);
    while (shared->turns[0] == 0) {
        sleep_ms(1);
    }
    assert_int_equal(kill((pid_t)shared->turns[0], SIGKILL), 0);
}

/* ---- Crowds ---- */

/* An owner that has something to end. */
static void take_to_end(unsigned i)
{
    bool ends = true;

    if (idem__lock_acquire_for(lock, now_ms() + PATIENCE_MS, &ends, NULL) !=
        0) {
        _exit(8);
    }
    note_double();
    note_order(i);
    give();
}

static void end_crowd(pid_t *pids, unsigned n)
{
    unsigned i;

    __atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
    for (i = 0; i <= n; i++) {
        end(pids[i], 0);
    }
}

static void wait_until_at_head(void)
{
    long long end_ms = now_ms() + AT_ONCE_MS;

    while (at_head() == 0) {
        assert_true(now_ms() < end_ms);
        sleep_ms(1);
    }
}

/* The end of an owner does not stand behind a crowd: it came last, and few have
 * the lock before it. (One that looks in the very moment in which the holder lets go
 * may have it first.) Nobody is left out for that. */
TEST_LINE(crowd, doesNotDelayAnEnd)
{
    pid_t pids[LONG + 2];
    unsigned i;

    form_crowd(pids, LONG);
    pids[LONG + 1] = start(take_to_end, LONG + 1);
    wait_until_at_head();
    end_crowd(pids, LONG + 1);
    assert_between(shared->order[LONG + 1], 1, LONG * 3 / 4);
    for (i = 1; i <= LONG; i++) {
        assert_true(shared->order[i] != 0);
    }
    assert_int_equal(at_head(), 0);
}

/* One that is killed at the head of the line is counted there no longer once others
 * have had their turn. */
TEST_LINE(crowd, forgetsTheDeadAtItsHead)
{
    pid_t pids[LONG + 2];
    pid_t ender;

    form_crowd(pids, LONG);
    ender = start(take_to_end, LONG + 1);
    wait_until_at_head();
    end(ender, SIGKILL);
    assert_int_equal(at_head(), 1);
    end_crowd(pids, LONG);
    assert_int_equal(at_head(), 0);
}

static void count_looks(unsigned i)
{
    long long since_ms = now_ms();
    struct rusage before;
    struct rusage after;

    (void)getrusage(RUSAGE_SELF, &before);
    take();
    (void)getrusage(RUSAGE_SELF, &after);
    note_order(i);
    shared->looks = after.ru_nvcsw - before.ru_nvcsw;
    shared->looked_ms = now_ms() - since_ms;
    give();
}

/* Those far back look seldom: a thousand that looked every few
 * milliseconds would take the processors from the holder. */
TEST_LINE(crowd, sleeps)
{
    pid_t pids[LONG + 2];
    uint32_t before;

    form_crowd(pids, LONG);
    before = tickets();
    pids[LONG + 1] = start(count_looks, LONG + 1);
    wait_for_ticket(before + 1);
    sleep_ms(1000);
    end_crowd(pids, LONG + 1);
    assert_true(shared->looks < LONG + 10 + shared->looked_ms / 20);
}

/* ---- Storms ---- */

static void take_often(unsigned i)
{
    for (;;) {
        take();
        pause_us(i % 2 == 0 ? 50 : 500);
        shared->turns[i]++;
        give();
        if (i % 3 == 0) {
            pause_us(300);
        }
    }
}

static unsigned kills(void)
{
    const char *is_long = getenv("IDEM_TEST_LONG");

    return is_long != NULL && strcmp(is_long, "1") == 0 ? 20000 : 400;
}

/* Killed at any moment, and started again: never two holders, and no end to the
 * turns. */
TEST_LINE(storm, ofKills)
{
    unsigned before[6];
    pid_t pids[COUNT(before)];
    unsigned n;
    unsigned i;

    srand(1);
    for (i = 0; i < COUNT(pids); i++) {
        pids[i] = start(take_often, i);
    }
    for (n = 0; n < kills(); n++) {
        i = (unsigned)rand() % COUNT(pids);
        pause_us(rand() % 3000);
        end(pids[i], SIGKILL);
        pids[i] = start(take_often, i);
    }
    memcpy(before, shared->turns, sizeof(before));
    wait_for_turns(before, COUNT(pids), 1);
    for (i = 0; i < COUNT(pids); i++) {
        end(pids[i], SIGKILL);
    }
    subtract(before, COUNT(pids));
    for (i = 0; i < COUNT(pids); i++) {
        assert_true(shared->turns[i] > 0);
    }
}

/* The words in the file are advice: with anything in them there is one holder at
 * a time, and everybody has a turn. */
TEST_LINE(storm, ofNonsense)
{
    unsigned char nonsense[WORDS_LEN];
    unsigned before[PROCESSES];
    pid_t pids[PROCESSES];
    unsigned n;
    unsigned i;
    int fd;

    srand(2);
    fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    for (i = 0; i < PROCESSES; i++) {
        pids[i] = start(take_turns, i);
    }
    wait_for_ticket(10);
    for (n = 0; n < 50; n++) {
        for (i = 0; i < sizeof(nonsense); i++) {
            nonsense[i] = (unsigned char)rand();
        }
        assert_int_equal(pwrite(fd, nonsense, sizeof(nonsense), NEXT_AT),
                         sizeof(nonsense));
        sleep_ms(10);
    }
    memcpy(before, shared->turns, sizeof(before));
    wait_for_turns(before, PROCESSES, 21);
    shared->stop = 1;
    for (i = 0; i < PROCESSES; i++) {
        end(pids[i], 0);
    }
    subtract(before, PROCESSES);
    for (i = 0; i < PROCESSES; i++) {
        assert_true(shared->turns[i] > 20);
    }
    (void)close(fd);
}

/* ---- Deadlines ---- */

/* Who waits in vain is told so at its deadline, and is in nobody's way. */
TEST_LINE(deadline, isKept)
{
    long long since_ms;
    pid_t holder;
    pid_t waiter;

    holder = start(hold, 0);
    wait_until_held(0);
    assert_ok(idem__lock_open(path, &plain, &lock, &why));
    since_ms = now_ms();
    assert_code(IDEM_EUNAVAILABLE,
                idem__lock_acquire(lock, since_ms + 50, &why));
    assert_true(now_ms() - since_ms >= 50);
    assert_in_time(now_ms() - since_ms, AT_ONCE_MS);
    waiter = start(take_once, 1);
    wait_for_ticket(3);
    since_ms = now_ms();
    shared->stop = 1;
    end(holder, 0);
    end(waiter, 0);
    assert_at_once(1, since_ms);
    idem__lock_close(lock);
}

/* ---- A full disk ---- */

/* The file lost its room and cannot get it back: who had the lock without a ticket does
 * not call the one after the ticket that it had before. */
TEST_LINE(full, callsNobodyByAnOldTicket)
{
    const struct rlimit full = {0, RLIM_INFINITY};
    const struct rlimit room = {RLIM_INFINITY, RLIM_INFINITY};
    uint32_t buf[WORDS_LEN / 4];

    assert_ok(idem__lock_open(path, &plain, &lock, &why));
    assert_ok(idem__lock_acquire(lock, now_ms() + PATIENCE_MS, &why));
    idem__lock_release(lock);
    words(buf);
    assert_int_equal(buf[1], 1);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(truncate(path, 0), 0);
    sleep_ms(2); /* Until then a look at the file serves. */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    assert_ok(idem__lock_acquire(lock, now_ms() + PATIENCE_MS, &why));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &room), 0);
    idem__lock_release(lock);
    words(buf);
    assert_int_equal(buf[1], 0);
    idem__lock_close(lock);
}

/* ---- Containers ---- */

/* Takes turns as process 2 or so of a namespace of its own. */
static void take_turns_inside(unsigned i)
{
    pid_t pid;
    int status;

    if (unshare(CLONE_NEWPID) != 0 &&
        unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
        _exit(7);
    }
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        take_turns(i);
        _exit(0);
    }
    _exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? 0 : 6);
}

static bool can_unshare(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        _exit(unshare(CLONE_NEWPID) == 0 ||
                      unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0
                  ? 0
                  : 1);
    }
    return waitpid(pid, &status, 0) == pid && status == 0;
}

/* ROW(44) Containers share a file and know nothing of each other's processes,
 * which all have the same number: one holder at a time, and everybody in turn. */
TEST_LINE(containers, takeTurns)
{
    if (!can_unshare()) {
        test_skip("no namespace may be made here");
    }
    assert_true(share_of_slowest(take_turns_inside, 500) >= 15);
}
