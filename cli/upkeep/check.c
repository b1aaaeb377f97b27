/* idem store check: checks a store; idem doctor adds checks of its own. */
#include "upkeep/store.h"

#include "contract/kind.h"
#include "process/self.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/screen.h"
#include "text/text.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const grades[] = {
    [IDEM_GRADE_OK] = "ok",
    [IDEM_GRADE_WARN] = "warn",
    [IDEM_GRADE_SKIP] = "skip",
    [IDEM_GRADE_BAD] = "bad",
};

static void print_finding(const struct idem_finding *finding)
{
    (void)printf("%-4s  %s: ", grades[finding->grade], finding->about);
    cli_print_escaped(stdout, idem_str(finding->text));
    if (finding->mend != NULL) {
        (void)fputs("; mend: ", stdout);
        cli_print_escaped(stdout, idem_str(finding->mend));
    }
    (void)putchar('\n');
    (void)fflush(stdout); /* The next finding may take a while. */
}

static void add_finding(struct cli_json *to, const struct idem_finding *finding)
{
    cli_json_append(to, "findings");
    cli_json_text(to, "grade", grades[finding->grade]);
    cli_json_text(to, "about", finding->about);
    cli_json_bytes(to, "text", idem_str(finding->text));
    if (finding->mend != NULL) {
        cli_json_bytes(to, "mend", idem_str(finding->mend));
    }
    cli_json_close(to);
}

void cli_check_take(void *ctx, const struct idem_finding *finding)
{
    struct cli_check *c = ctx;

    cli_progress_hide();
    if (finding->grade == IDEM_GRADE_BAD && c->code == 0) {
        c->code = finding->code;
    }
    c->part |= finding->grade == IDEM_GRADE_SKIP;
    if (c->json) {
        add_finding(&c->object, finding);
    } else {
        print_finding(finding);
    }
}

static int report(void *ctx, uint64_t done, uint64_t all)
{
    struct cli_check *check = ctx;
    struct pollfd stop = {.fd = check->stop, .events = POLLIN};

    cli_progress("checking", done, all);
    if (!check->stopped && poll(&stop, 1, 0) > 0) {
        check->stopped = true;
        check->percent =
            all == 0 ? 0 : (unsigned)((double)done / (double)all * 100);
    }
    return check->stopped;
}

/* 0, or an exit status after an error message. */
static int without_check(struct cli_check *check,
                         const struct idem_store_kind *kind)
{
    struct idem_finding finding = {.grade = IDEM_GRADE_SKIP, .about = "store"};
    char text[64];

    (void)snprintf(text, sizeof(text), "%s: stores have no check of their own",
                   kind->scheme);
    if (!check->may_lack) {
        cli_say("%s; idem doctor checks all else", text);
        return CLI_USAGE;
    }
    finding.text = text;
    cli_check_take(check, &finding);
    return 0;
}

/* An exit status, after an error message. */
static int check_store(struct cli_check *check, const char *url)
{
    struct idem_check_options options = IDEM_CHECK_OPTIONS_INIT;
    const struct idem_store_kind *kind;
    const char *place;
    struct idem_error error = {0};

    options.quick = check->quick;
    options.progress = report;
    options.ctx = check;
    error.code = idem__kind_find(url, &kind, &place, &error);
    if (error.code == 0 && kind->check == NULL) {
        return without_check(check, kind);
    }
    if (error.code == 0) {
        error.code =
            kind->check(place, &options, cli_check_take, check, &error);
    }
    cli_progress_end();
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

/* A signal stops the check at its next report of progress, so that it can print what it
 * has found. The signal stays blocked then: unblocked it would end the process before
 * that. */
static int check_url(struct cli_check *check, const char *url)
{
    sigset_t mask;
    int status;

    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    check->stop = cli_stop_fd();
    status = check_store(check, url);
    if (check->stop >= 0 && !check->stopped) {
        (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
        (void)close(check->stop);
    }
    return status;
}

static int finish(struct cli_check *check, const char *url)
{
    char shown[IDEM_STORE_URL_MAX + 1];
    int printed = 0;

    if (check->json) {
        cli_json_bytes(&check->object, "store",
                       idem_str(idem_url_hide(url, shown, sizeof(shown))));
        cli_json_bool(&check->object, "usable", check->code == 0);
        cli_json_bool(&check->object, "whole", !check->part);
        printed = cli_json_write(&check->object, stdout);
    }
    if (check->stopped) {
        cli_say("stopped by a signal at %u %%", check->percent);
    }
    if (check->code != 0) {
        return cli_exit_of(check->code);
    }
    return check->stopped ? CLI_BUSY : printed;
}

int cli_check_run(struct cli_check *check, const char *store_url)
{
    char *url;
    int status = cli_store_url(store_url, /* make= */ false, &url);

    if (status != 0) {
        return status;
    }
    cli_json_init(&check->object);
    if (check->before != NULL) {
        check->before(check);
    }
    status = check_url(check, url);
    if (status == 0 && check->code == 0 && !check->stopped &&
        check->after != NULL) {
        check->after(check);
    }
    if (status == 0) {
        status = finish(check, url);
    }
    cli_json_finish(&check->object);
    free(url);
    return status;
}
