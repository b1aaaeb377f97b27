/* A decision by a person: the record it is about, the decision, and its audit log. */
#include "decide/decided.h"

#include "process/host.h"
#include "record/record.h"
#include "request/identity.h"
#include "request/request.h"
#include "store/journal.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <idem/operator.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Reading the record ---- */

static int look_up(const struct cli_decided_key *of, struct idem_slice scope,
                   struct idem_slice key, struct idem_store **ret_store,
                   struct idem_answer **ret_answer)
{
    unsigned flags = of->dry_run ? IDEM_OPEN_READONLY
                                 : IDEM_OPEN_NO_CREATE | CLI_OPEN_FOR_PERSON;
    struct idem_error error = {0};
    int status = cli_open_store(of->store, flags, ret_store);

    if (status != 0) {
        return status;
    }
    if (!of->dry_run) {
        /* The journal may know how the work ended. After the decision the store would
         * refuse to record that. */
        (void)cli_journal_settle(*ret_store, scope, key, /* remarks= */ true,
                                 &error);
    }
    status = cli_get(*ret_store, of->store, scope, key, ret_answer);
    if (status != 0) {
        idem_close(*ret_store);
    }
    return status;
}

int cli_decide_key(const struct cli_command *command, int argc, char **argv,
                   const struct cli_decided_key *of, cli_decide_fn *decide,
                   void *ctx)
{
    struct idem_answer *answer;
    struct idem_store *store;
    struct idem_slice scope;
    struct cli_key_text key;
    const struct idem_record *r;
    uint64_t fence;
    int status = cli_operand_key(command, argc, argv, of->key_file, &key);

    if (status == 0) {
        status = cli_scope(of->scope, &scope);
    }
    if (status == 0) {
        status =
            look_up(of, scope, idem_bytes(key.bytes, key.len), &store, &answer);
    }
    if (status != 0) {
        return status;
    }
    r = idem_answer_record(answer);
    fence = of->fence_given ? of->fence : r->fence;
    if (r->fence != fence && (of->dry_run || of->checks_fence)) {
        cli_say("the record now has fence %llu, not %llu: run idem show again",
                (unsigned long long)r->fence, (unsigned long long)fence);
        status = CLI_NOT_RECORDED;
    } else {
        status = decide(ctx, store, r, fence);
    }
    idem_answer_destroy(answer);
    idem_close(store);
    return status;
}

/* ---- The audit log ---- */

static int open_file(const char *path, int *ret_fd)
{
    *ret_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                   0600);
    if (*ret_fd >= 0) {
        return 0;
    }
    cli_say("cannot keep the audit log %s: %s; nothing is decided without it "
            "(IDEM_AUDIT_LOG says where it is)",
            path, strerror(errno));
    return CLI_DENIED;
}

static int open_default(int *ret_fd)
{
    char *path = cli_state_path("audit.log");
    int status;

    if (path == NULL) {
        cli_say(
            "no home directory for the audit log; name a file: IDEM_AUDIT_LOG");
        return CLI_CONFIG;
    }
    if (cli_make_directories(path) != 0) {
        cli_say("cannot create the directory %s: %s", path, strerror(errno));
        status = CLI_DENIED;
    } else {
        status = open_file(path, ret_fd);
    }
    free(path);
    return status;
}

/* NULL or empty: the log is the default one. */
static const char *named_path(void)
{
    return secure_getenv("IDEM_AUDIT_LOG");
}

static bool is_off(const char *path)
{
    return path != NULL && strcmp(path, "off") == 0;
}

bool cli_audit_keeps_records(void)
{
    return !is_off(named_path()) && cli_log_shows_keys();
}

int cli_audit_open(struct cli_audit *ret_audit)
{
    const char *path = named_path();
    int status = cli_log_init();

    ret_audit->fd = -1;
    if (status != 0 || is_off(path)) {
        return status;
    }
    return path != NULL && *path != '\0' ? open_file(path, &ret_audit->fd)
                                         : open_default(&ret_audit->fd);
}

void cli_audit_close(struct cli_audit *audit)
{
    if (audit->fd >= 0) {
        (void)close(audit->fd);
        audit->fd = -1;
    }
}

/* The whole line in one write, so that several processes may append. */
static void append(int fd, struct cli_json *line)
{
    char *text = cli_json_line(line);
    size_t len = text == NULL ? 0 : strlen(text);

    cli_json_finish(line);
    if (text == NULL) {
        cli_say("a line is missing from the audit log: out of memory");
        return;
    }
    if (write(fd, text, len) != (ssize_t)len ||
        (fsync(fd) != 0 && errno != EINVAL)) {
        cli_say("a line is missing from the audit log: %s", strerror(errno));
    }
    free(text);
}

static void begin(struct cli_json *line, const char *event,
                  const struct idem_record *before, uint64_t fence,
                  const struct cli_decision *decision, int code)
{
    cli_log_begin(line, code == 0 ? "info" : "warning", event);
    cli_log_identity(line, before);
    cli_json_count(line, "fence", fence);
    cli_json_text(line, "before", idem_status_name(idem_record_status(before)));
    cli_json_text(line, "after", idem_status_name(decision->status));
    cli_json_bytes(line, "owner", before->owner);
    cli_json_bytes(line, "who", idem_str(decision->who));
    cli_json_bytes(line, "why", idem_str(decision->why));
    cli_json_text(line, "answer", idem_error_name(code));
}

static void add_record(struct cli_json *line, const struct idem_record *before)
{
    if (cli_audit_keeps_records()) {
        cli_json_open(line, "record");
        cli_json_record(line, before, /* with_bytes= */ true);
        cli_json_close(line);
    }
}

/* The log keeps the replaced record whole, and nothing of it after a refusal. */
static void keep(const struct cli_audit *audit, const char *event,
                 const struct idem_record *before, uint64_t fence,
                 const struct cli_decision *decision, int code)
{
    struct cli_json line;

    if (audit->fd < 0) {
        return;
    }
    begin(&line, event, before, fence, decision, code);
    if (code == 0) {
        add_record(&line, before);
    }
    append(audit->fd, &line);
}

int cli_decide(struct idem_store *store, const struct cli_audit *audit,
               const struct idem_record *before, uint64_t fence,
               const struct cli_decision *decision,
               struct idem_error *ret_error)
{
    struct idem_outcome outcome = {.status = decision->status};
    bool reopens = decision->status == IDEM_STATUS_RETRY;
    int rc;

    outcome.text = idem_str(decision->why);
    if (decision->result != NULL) {
        outcome.result = *decision->result;
    }
    rc = reopens ? idem_reopen(store, before->scope, before->key, fence,
                               idem_str(decision->who), outcome.text, ret_error)
                 : idem_resolve(store, before->scope, before->key, fence,
                                idem_str(decision->who), &outcome,
                                decision->force ? IDEM_RESOLVE_FORCE : 0,
                                ret_error);
    keep(audit, reopens ? "reopen" : "resolve", before, fence, decision, rc);
    return rc;
}

int cli_decide_audited(struct idem_store *store,
                       const struct idem_record *before, uint64_t fence,
                       const struct cli_decision *decision,
                       struct idem_error *ret_error)
{
    struct cli_audit audit;
    int rc;

    if (cli_audit_open(&audit) != 0) {
        ret_error->code = IDEM_ECONFIG;
        (void)snprintf(ret_error->text, sizeof(ret_error->text),
                       "cannot write the audit log, so nothing was decided; "
                       "the log of this server has the reason");
        return IDEM_ECONFIG;
    }
    rc = cli_decide(store, &audit, before, fence, decision, ret_error);
    cli_audit_close(&audit);
    return rc;
}

void cli_say_live(const struct idem_record *r, const char *what)
{
    char live[CLI_LIVE_MAX];

    cli_live_text(r, cli_now_ms(), live);
    cli_say("the owner is at work (%s): %s", live, what);
}

int cli_decide_one(struct idem_store *store, const struct idem_record *r,
                   uint64_t fence, const struct cli_decision *decision)
{
    struct idem_error error = {0};
    struct cli_audit audit;
    int status = cli_audit_open(&audit);

    if (status != 0) {
        return status;
    }
    error.code = cli_decide(store, &audit, r, fence, decision, &error);
    cli_audit_close(&audit);
    if (error.code == IDEM_EINVALID && r->live) {
        cli_say_live(r, CLI_LIVE_FORCE);
        return CLI_NOT_RECORDED;
    }
    return error.code == 0 ? 0 : cli_decide_refused(&error);
}

/* ---- The decision ---- */

int cli_decide_refused(const struct idem_error *error)
{
    int status = cli_fail_with(error);

    return error->code == IDEM_EINVALID ? CLI_NOT_RECORDED : status;
}

/* For each status a person can set: what it says of the work, and what follows. */
static const struct {
    const char *text;
    const char *next;
} decided[] = {
    [IDEM_STATUS_COMPLETED] = {"it happened", "later callers get this result"},
    [IDEM_STATUS_FAILED] = {"it failed for good",
                            "later callers get the failure"},
    [IDEM_STATUS_RELEASED] = {"it did not happen", "the next caller runs it"},
    [IDEM_STATUS_UNKNOWN] = {"it is unknown whether it happened",
                             "a person must find out"},
    [IDEM_STATUS_RETRY] = {"it may have happened",
                           "the next caller runs it again, whatever its "
                           "request"},
};

const char *cli_decided_text(enum idem_status status)
{
    return decided[status].text;
}

const char *cli_decided_next(enum idem_status status)
{
    return decided[status].next;
}

void cli_print_decided(const struct idem_record *r, enum idem_status status,
                       enum cli_decided how)
{
    cli_print_escaped(stdout, r->key);
    (void)printf(": %s -> %s (fence %llu): ",
                 idem_status_name(idem_record_status(r)),
                 idem_status_name(status), (unsigned long long)r->fence);
    switch (how) {
    case CLI_DECIDED:
        (void)printf("%s; %s\n", cli_decided_text(status),
                     cli_decided_next(status));
        break;
    case CLI_WOULD_DECIDE:
        (void)printf("%s; nothing was changed\n", cli_decided_text(status));
        break;
    case CLI_NOT_DECIDED:
        (void)puts("left alone");
        break;
    }
}

int cli_print_decided_json(const struct idem_record *r, enum idem_status status,
                           bool changed)
{
    struct cli_json json;

    cli_json_init(&json);
    cli_json_bytes(&json, "scope", r->scope);
    cli_json_bytes(&json, "key", r->key);
    cli_json_text(&json, "before", idem_status_name(idem_record_status(r)));
    cli_json_text(&json, "after", idem_status_name(status));
    cli_json_count(&json, "fence", r->fence);
    cli_json_bool(&json, "changed", changed);
    if (status == IDEM_STATUS_RETRY) {
        cli_json_open(&json, "record");
        cli_json_record(&json, r, /* with_bytes= */ true);
        cli_json_close(&json);
    }
    return cli_json_print(&json);
}
