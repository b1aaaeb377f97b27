/* Lines for programs that collect logs. */
#include "text/log.h"

#include "process/host.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <stdlib.h>

static bool hashed;

int cli_log_init(void)
{
    const char *rule = secure_getenv("IDEM_LOG_KEYS");

    hashed = rule != NULL && strcmp(rule, "hashed") == 0;
    if (rule == NULL || *rule == '\0' || hashed || strcmp(rule, "clear") == 0) {
        return 0;
    }
    cli_say("IDEM_LOG_KEYS is neither clear nor hashed");
    return CLI_USAGE;
}

bool cli_log_shows_keys(void)
{
    return !hashed;
}

void cli_log_begin(struct cli_json *line, const char *level, const char *event)
{
    char time[32];

    cli_time_text(cli_now_ms(), time);
    cli_json_init(line);
    cli_json_text(line, "time", time);
    cli_json_text(line, "level", level);
    cli_json_text(line, "event", event);
}

void cli_log_identity(struct cli_json *line, const struct idem_record *r)
{
    if (!hashed) {
        cli_json_bytes(line, "scope", r->scope);
        cli_json_bytes(line, "key", r->key);
    }
    cli_json_hex(line, "id", idem_bytes(r->id, sizeof(r->id)));
}

void cli_log_record(struct cli_json *line, const struct idem_record *r)
{
    cli_log_identity(line, r);
    cli_json_text(line, "status", idem_status_name(idem_record_status(r)));
    cli_json_bytes(line, "owner", r->owner);
    cli_json_count(line, "fence", r->fence);
    cli_json_count(line, "attempts", r->attempts);
    cli_json_ms(line, "created_ms", r->created_ms);
    cli_json_ms(line, "started_ms", r->started_ms);
    if (r->expected_ms != 0) {
        cli_json_ms(line, "expected_ms", r->expected_ms);
    }
    if (r->status == IDEM_STATUS_IN_PROGRESS) {
        cli_json_ms(line, "lease_end_ms", r->lease_end_ms);
    }
    if (r->ended_ms != 0) {
        cli_json_ms(line, "ended_ms", r->ended_ms);
    }
}

int cli_log_end(struct cli_json *line, FILE *f)
{
    int status = cli_json_write(line, f);

    (void)fflush(f);
    cli_json_finish(line);
    return status;
}
