/* idem store check: is the store as it should be? */
#include "check.h"

#include "cli.h"
#include "progress.h"

#include <stdlib.h>

static const char *grade_name(enum idem_grade grade)
{
    switch (grade) {
    case IDEM_GRADE_OK:
        return "ok";
    case IDEM_GRADE_WARN:
        return "warn";
    case IDEM_GRADE_BAD:
        break;
    }
    return "bad";
}

static void print_finding(const struct idem_finding *finding)
{
    (void)printf("%-4s  %s: ", grade_name(finding->grade), finding->about);
    cli_print_escaped(stdout, idem_str(finding->text));
    if (finding->mend != NULL) {
        (void)fputs("; mend: ", stdout);
        cli_print_escaped(stdout, idem_str(finding->mend));
    }
    (void)putchar('\n');
    (void)fflush(stdout); /* The next may take a while. */
}

static void add_finding(struct cli_json *to, const struct idem_finding *finding)
{
    struct cli_json json;

    cli_json_init(&json);
    cli_json_text(&json, "grade", grade_name(finding->grade));
    cli_json_text(&json, "about", finding->about);
    cli_json_bytes(&json, "text", idem_str(finding->text));
    if (finding->mend != NULL) {
        cli_json_bytes(&json, "mend", idem_str(finding->mend));
    }
    cli_json_append(to, "findings", &json);
}

void cli_check_init(struct cli_check *check, bool json)
{
    check->code = 0;
    check->json = json;
    cli_json_init(&check->object);
}

void cli_check_take(void *ctx, const struct idem_finding *finding)
{
    struct cli_check *c = ctx;

    cli_progress_hide();
    if (finding->grade == IDEM_GRADE_BAD && c->code == 0) {
        c->code = finding->code;
    }
    if (c->json) {
        add_finding(&c->object, finding);
    } else {
        print_finding(finding);
    }
}

static void report(void *ctx, uint64_t done, uint64_t all)
{
    (void)ctx;
    cli_progress("checking", done, all);
}

/* What stands behind @scheme in @url; NULL if it is of another one. */
static const char *behind(const char *url, const char *scheme)
{
    size_t len = strlen(scheme);

    return strncmp(url, scheme, len) == 0 ? url + len : NULL;
}

int cli_check_url(struct cli_check *check, const char *url)
{
    const char *table = behind(url, "dynamodb:");
    const char *file = behind(url, "sqlite:");
    struct idem_error error = {0};

    if (table != NULL) {
        error.code = idem_dynamodb_check(table, cli_check_take, check, &error);
    } else if (file != NULL) {
        error.code =
            idem_sqlite_check(file, cli_check_take, report, check, &error);
    } else {
        cli_say("only sqlite: and dynamodb: stores can be checked");
        return CLI_USAGE;
    }
    cli_progress_end();
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

int cli_check_finish(struct cli_check *check, const char *url)
{
    int printed = 0;

    if (check->json) {
        cli_json_bytes(&check->object, "store", idem_str(url));
        cli_json_bool(&check->object, "usable", check->code == 0);
        printed = cli_json_print(&check->object);
    }
    return check->code != 0 ? cli_exit_of(check->code) : printed;
}

int cli_check(const char *store_url, bool json)
{
    struct cli_check check;
    char *url;
    int status = cli_store_url(store_url, /* make= */ false, &url);

    if (status != 0) {
        return status;
    }
    cli_check_init(&check, json);
    status = cli_check_url(&check, url);
    if (status == 0) {
        status = cli_check_finish(&check, url);
    }
    cli_json_finish(&check.object);
    free(url);
    return status;
}
