/* A person's decision about a record, as a line and in words. */
#include "decide/decided.h"

#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/text.h"

int cli_decide_refused(const struct idem_error *error)
{
    int status = cli_fail_with(error);

    return error->code == IDEM_EINVALID ? CLI_NOT_RECORDED : status;
}

const char *cli_decided_text(enum idem_status status)
{
    switch (status) {
    case IDEM_STATUS_COMPLETED:
        return "it happened";
    case IDEM_STATUS_FAILED:
        return "it failed for good";
    case IDEM_STATUS_RELEASED:
        return "it did not happen";
    case IDEM_STATUS_RETRY:
        return "it may have happened";
    case IDEM_STATUS_UNKNOWN:
    case IDEM_STATUS_IN_PROGRESS:
        break;
    }
    return "nobody knows whether it happened";
}

const char *cli_decided_next(enum idem_status status)
{
    switch (status) {
    case IDEM_STATUS_COMPLETED:
        return "later callers get this result";
    case IDEM_STATUS_FAILED:
        return "later callers are told so";
    case IDEM_STATUS_RELEASED:
        return "the next caller runs it";
    case IDEM_STATUS_RETRY:
        return "the next caller runs it again, whatever its request";
    case IDEM_STATUS_UNKNOWN:
    case IDEM_STATUS_IN_PROGRESS:
        break;
    }
    return "a person must find out";
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
    int printed;

    cli_json_init(&json);
    cli_json_bytes(&json, "scope", r->scope);
    cli_json_bytes(&json, "key", r->key);
    cli_json_text(&json, "before", idem_status_name(idem_record_status(r)));
    cli_json_text(&json, "after", idem_status_name(status));
    cli_json_count(&json, "fence", r->fence);
    cli_json_bool(&json, "changed", changed);
    printed = cli_json_print(&json);
    cli_json_finish(&json);
    return printed;
}
