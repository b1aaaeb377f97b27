/* idem doctor: checks everything that idem depends on, and says how to mend it. */
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "process/host.h"
#include "record/open_records.h"
#include "store/journal.h"
#include "store/open.h"
#include "text/error.h"
#include "text/json.h"
#include "text/text.h"
#include "upkeep/store.h"

#include <errno.h>
#include <fcntl.h>
#include <idem/journal.h>
#include <idem/metrics.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

extern char **environ;

static struct {
    bool json;
    const char *store;
} args;

enum {
    CLOCK_OFF_MS = 2000
};

static void found(struct cli_check *check, enum idem_grade grade,
                  const char *about, const char *mend, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

static void found(struct cli_check *check, enum idem_grade grade,
                  const char *about, const char *mend, const char *format, ...)
{
    struct idem_finding finding = {.grade = grade,
                                   .about = about,
                                   .mend = mend};
    char text[512];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    finding.text = text;
    finding.code = grade == IDEM_GRADE_BAD ? IDEM_ECONFIG : 0;
    cli_check_take(check, &finding);
}

/* ---- The host ---- */

static void check_version(struct cli_check *check)
{
    struct utsname host;

    if (uname(&host) == 0) {
        found(check, IDEM_GRADE_OK, "version", NULL, "idem %s on %s %s, %s",
              IDEM_VERSION, host.sysname, host.release, host.machine);
    }
}

/* Asks the kernel, which the daemon that keeps the clock right informs. */
static void check_clock(struct cli_check *check)
{
    struct timex state = {.modes = 0};
    int rc = adjtimex(&state);

    if (rc < 0) {
        found(check, IDEM_GRADE_WARN, "clock", NULL,
              "cannot check whether the clock is synchronized: %s",
              strerror(errno));
    } else if (rc == TIME_ERROR || (state.status & STA_UNSYNC) != 0) {
        found(
            check, IDEM_GRADE_WARN, "clock", "timedatectl set-ntp true",
            "this host's clock is not synchronized: displayed times and AWS signatures may be wrong");
    } else {
        found(check, IDEM_GRADE_OK, "clock", NULL,
              "it is synchronized to %lld ms",
              (long long)state.maxerror / 1000);
    }
}

/* ---- The environment ---- */

/* The variables that a command reads, or that `idem run` and `idem watch` set. */
static const char *const variables[] = {
    "IDEM_STORE",    "IDEM_SCOPE",         "IDEM_OWNER",
    "IDEM_TOKEN",    "IDEM_JOURNAL_DIR",   "IDEM_AUDIT_LOG",
    "IDEM_LOG_KEYS", "IDEM_METER",         "IDEM_KEY",
    "IDEM_FENCE",    "IDEM_ATTEMPTS",      "IDEM_TAKEOVER",
    "IDEM_EVENT_MS", "IDEM_STORE_TIMEOUT", NULL,
};

/* MESSAGE_ and LAMBDA_ begin many names, of idem consume and idem lambda; the clients for
 * Node.js and Python read IDEM_PROGRAM. */
static const char *const families[] = {"MESSAGE_", "LAMBDA_", "PROGRAM", NULL};

static bool is_known(const char *name, size_t len)
{
    size_t i;

    for (i = 0; families[i] != NULL; i++) {
        if (strncmp(name + strlen("IDEM_"), families[i], strlen(families[i])) ==
            0) {
            return true;
        }
    }
    for (i = 0; variables[i] != NULL; i++) {
        if (strlen(variables[i]) == len &&
            memcmp(variables[i], name, len) == 0) {
            return true;
        }
    }
    return false;
}

static void check_variable(struct cli_check *check, const char *name,
                           size_t len)
{
    char word[64];
    struct cli_nearest nearest = {.word = word};
    char mend[128];
    size_t i;

    (void)snprintf(word, sizeof(word), "%.*s", (int)len, name);
    for (i = 0; variables[i] != NULL; i++) {
        cli_nearest_offer(&nearest, variables[i]);
    }
    if (nearest.best != NULL) {
        (void)snprintf(mend, sizeof(mend), "Did you mean %s.", nearest.best);
    } else {
        (void)snprintf(mend, sizeof(mend),
                       "Unset it, or leave it to the "
                       "program that reads it.");
    }
    found(check, IDEM_GRADE_WARN, "environment", mend,
          "%s is set, but no program reads it", word);
}

static void check_environment(struct cli_check *check)
{
    bool odd = false;
    size_t i;

    for (i = 0; environ[i] != NULL; i++) {
        size_t len = strcspn(environ[i], "=");

        if (strncmp(environ[i], "IDEM_", 5) == 0 && len < 64 &&
            !is_known(environ[i], len)) {
            check_variable(check, environ[i], len);
            odd = true;
        }
    }
    if (!odd) {
        found(check, IDEM_GRADE_OK, "environment", NULL,
              "every variable that is set is known");
    }
}

/* ---- The journal, the audit log, the meter ---- */

/* What a person does about the entries of a state. */
static const struct {
    enum idem_journal_state state;
    const char *mend;
    const char *one; /* After "1 outcome". */
    const char *many;
} entry_rows[] = {
    {IDEM_JOURNAL_WAITING, "idem reconcile", " waits to be recorded",
     "s wait to be recorded"},
    {IDEM_JOURNAL_LOST, "idem reconcile --list",
     " came too late: the record has another; a person must look",
     "s came too late: the record has another; a person must look"},
    {IDEM_JOURNAL_DAMAGED, "idem reconcile --list",
     " is damaged and set aside: a person must look",
     "s are damaged and set aside: a person must look"},
    {IDEM_JOURNAL_NEWER, "Use the newer idem.", " was written by a newer idem",
     "s were written by a newer idem"},
};

enum {
    ENTRY_ROWS = sizeof(entry_rows) / sizeof(entry_rows[0])
};

static int count_entry(void *ctx, const struct idem_journal_info *info,
                       const struct idem_error *error)
{
    unsigned long *counts = ctx;
    size_t i;

    (void)error;
    for (i = 0; i < ENTRY_ROWS; i++) {
        counts[i] += info->state == entry_rows[i].state;
    }
    return 0;
}

/* A full journal keeps no more outcomes, so this warns while there is room. */
static void judge_room(struct cli_check *check, struct idem_journal *journal)
{
    struct idem_journal_usage usage = IDEM_JOURNAL_USAGE_INIT;

    if (idem_journal_read_usage(journal, &usage, NULL) == 0 && usage.near) {
        found(
            check, usage.room > 0 ? IDEM_GRADE_WARN : IDEM_GRADE_BAD, "journal",
            "Make room on the disk.",
            "it has room for %llu MiB more than the %llu that it holds; when full, it keeps no more outcomes",
            (unsigned long long)(usage.room >> 20),
            (unsigned long long)usage.entries);
    }
}

static void check_entries(struct cli_check *check, const unsigned long *counts)
{
    bool any = false;
    size_t i;

    for (i = 0; i < ENTRY_ROWS; i++) {
        if (counts[i] > 0) {
            found(check, IDEM_GRADE_WARN, "journal", entry_rows[i].mend,
                  "%lu outcome%s", counts[i],
                  counts[i] == 1 ? entry_rows[i].one : entry_rows[i].many);
            any = true;
        }
    }
    if (!any) {
        found(check, IDEM_GRADE_OK, "journal", NULL, "nothing waits in it");
    }
}

static void check_journal(struct cli_check *check)
{
    unsigned long counts[ENTRY_ROWS] = {0};
    struct idem_error error = {0};
    struct idem_journal *journal;
    char *directory = NULL;

    error.code =
        cli_journal_open(/* make= */ false, &journal, &directory, &error);
    if (error.code == IDEM_ENOTFOUND) {
        found(check, IDEM_GRADE_OK, "journal", NULL,
              "it does not exist yet, because no command has needed it");
    } else if (error.code != 0) {
        found(check, IDEM_GRADE_BAD, "journal",
              "Name your own directory in IDEM_JOURNAL_DIR.", "%s", error.text);
    } else {
        error.code =
            idem_journal_list(journal, NULL, count_entry, counts, &error);
        if (error.code == 0) {
            judge_room(check, journal);
            check_entries(check, counts);
        } else {
            found(check, IDEM_GRADE_BAD, "journal", NULL, "%s", error.text);
        }
        idem_journal_close(journal);
    }
    free(directory);
}

/* True if a command can make a file in the directory of @path. @makes: the command makes
 * missing directories too. False with errno. */
static bool has_place(const char *path, bool makes)
{
    char *copy = strdup(path);
    char *directory;
    bool has;
    int why;

    if (copy == NULL) {
        return false;
    }
    directory = dirname(copy);
    while (makes && access(directory, F_OK) != 0 && errno == ENOENT) {
        directory = dirname(directory);
    }
    has = access(directory, W_OK | X_OK) == 0;
    why = errno;
    free(copy);
    errno = why;
    return has;
}

/* Opens @path as a command would, but makes nothing. */
static bool may_write(const char *path, bool makes)
{
    int fd =
        open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd >= 0) {
        (void)close(fd);
        return true;
    }
    return errno == ENOENT && has_place(path, makes);
}

/* Why may_write() was false. */
static const char *why_not(void)
{
    return errno == ENOENT ? "its directory does not exist" : strerror(errno);
}

static void check_audit(struct cli_check *check)
{
    const char *chosen = secure_getenv("IDEM_AUDIT_LOG");
    bool is_chosen = chosen != NULL && *chosen != '\0';
    char *path = is_chosen ? strdup(chosen) : cli_state_path("audit.log");

    if (path == NULL) {
        found(check, IDEM_GRADE_WARN, "audit", "Name a file in IDEM_AUDIT_LOG.",
              "no home directory for the audit log: nothing can be "
              "resolved");
    } else if (strcmp(path, "off") == 0) {
        found(check, IDEM_GRADE_WARN, "audit", NULL,
              "IDEM_AUDIT_LOG is off: decisions of persons are only in the "
              "records");
    } else if (!may_write(path, /* makes= */ !is_chosen)) {
        found(check, IDEM_GRADE_BAD, "audit", "Name a file in IDEM_AUDIT_LOG.",
              "cannot write %s: %s; no decision can be made", path, why_not());
    } else {
        found(check, IDEM_GRADE_OK, "audit", NULL, "decisions are kept in %s",
              path);
    }
    free(path);
}

static void check_meter(struct cli_check *check)
{
    const char *path = secure_getenv("IDEM_METER");
    struct idem_meter *meter;
    struct idem_error error = {0};

    if (path == NULL || *path == '\0') {
        return;
    }
    error.code = idem_meter_open(path, IDEM_METER_READONLY, &meter, &error);
    if (error.code == 0) {
        idem_meter_close(meter);
    }
    if (error.code != 0 && error.code != IDEM_ENOTFOUND) {
        found(check, IDEM_GRADE_WARN, "meter",
              "Name another file in IDEM_METER.", "%s", error.text);
    } else if (!may_write(path, /* makes= */ false)) {
        found(check, IDEM_GRADE_WARN, "meter",
              "Name another file in IDEM_METER.", "cannot write %s: %s", path,
              why_not());
    } else if (error.code == 0) {
        found(check, IDEM_GRADE_OK, "meter", NULL, "%s counts", path);
    } else {
        found(check, IDEM_GRADE_OK, "meter", NULL,
              "the next command creates %s", path);
    }
}

/* ---- The server ---- */

/* The socket that the unit idem-serve.socket makes. */
static void check_serve(struct cli_check *check)
{
    static const struct sockaddr_un address = {.sun_family = AF_UNIX,
                                               .sun_path =
                                                   "/run/idem/serve.sock"};
    const char *path = address.sun_path;
    int fd;

    if (access(path, F_OK) != 0) {
        return;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
        found(check, IDEM_GRADE_OK, "serve", NULL, "a server listens at %s",
              path);
    } else if (errno == EACCES) {
        found(check, IDEM_GRADE_OK, "serve", NULL,
              "%s is for other users: its group may connect", path);
    } else {
        found(check, IDEM_GRADE_WARN, "serve",
              "systemctl start idem-serve.socket", "nobody listens at %s: %s",
              path, strerror(errno));
    }
    (void)close(fd);
}

/* ---- What is in the store ---- */

static void check_snapshot(struct cli_check *check,
                           const struct cli_snapshot *snapshot)
{
    if (snapshot->overdue > 0) {
        found(check, IDEM_GRADE_WARN, "work", "idem list --overdue",
              "%llu operation%s should have ended by now",
              (unsigned long long)snapshot->overdue,
              snapshot->overdue == 1 ? "" : "s");
    }
    if (snapshot->unknown + snapshot->failed_len > 0) {
        found(check, IDEM_GRADE_WARN, "work",
              "idem list --status unknown,failed",
              "%llu operations are unknown and %llu failed: a person must look",
              (unsigned long long)snapshot->unknown,
              (unsigned long long)snapshot->failed_len);
    }
    if (snapshot->overdue + snapshot->unknown + snapshot->failed_len == 0) {
        found(check, IDEM_GRADE_OK, "work", NULL,
              "nothing needs a person; %llu in progress",
              (unsigned long long)snapshot->in_progress);
    }
}

/* The time of a SQLite store follows this host's clock unless somebody set the clock. */
static void check_time(struct cli_check *check,
                       const struct cli_snapshot *snapshot)
{
    int64_t off_ms = cli_now_ms() - snapshot->now_ms;
    char text[CLI_WORDS_MAX];

    if (off_ms < CLOCK_OFF_MS && off_ms > -CLOCK_OFF_MS) {
        found(check, IDEM_GRADE_OK, "time", NULL,
              "the store's time is that of this host");
        return;
    }
    cli_span_words(off_ms < 0 ? -off_ms : off_ms, text);
    found(check, IDEM_GRADE_WARN, "time",
          "Set the clock right; the store's own time does not jump.",
          "this host's clock is %s %s the store's time", text,
          off_ms < 0 ? "earlier than" : "later than");
}

static void check_work(struct cli_check *check)
{
    struct idem_error error = {0};
    struct idem_store *store;
    struct cli_snapshot snapshot;

    if (cli_open_store(args.store, IDEM_OPEN_READONLY, &store) != 0) {
        return; /* The store was found bad already. */
    }
    error.code = cli_snapshot_take(store, /* scope= */ NULL, /* keep= */ NULL,
                                   &snapshot, &error);
    if (error.code == 0) {
        check_time(check, &snapshot);
        check_snapshot(check, &snapshot);
        cli_snapshot_finish(&snapshot);
    } else {
        found(check, IDEM_GRADE_BAD, "work", NULL, "%s", error.text);
    }
    idem_close(store);
}

/* ---- The command ---- */

static void check_host(struct cli_check *check)
{
    check_version(check);
    check_clock(check);
    check_environment(check);
    check_journal(check);
    check_audit(check);
    check_meter(check);
    check_serve(check);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_check check = {.json = args.json,
                              .quick = true,
                              .may_lack = true,
                              .before = check_host,
                              .after = check_work};

    (void)argv;
    if (argc > 0) {
        return cli_usage(command, "doctor takes no key; see idem show");
    }
    return cli_check_run(&check, args.store);
}

static struct cli_option options[] = {
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_NO_PROGRESS,
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem doctor                       # what is wrong, and what to do about it",
    "idem store check                  # read the whole file",
    "idem doctor --json | jq '.findings[] | select(.grade != \"ok\")'",
    NULL,
};

const struct cli_command cli_doctor = {
    .name = "doctor",
    .summary = "check store and host, and say what to do",
    .usage = "idem doctor [OPTION...]",
    .examples = examples,
    .options = options,
    .run = run,
};
