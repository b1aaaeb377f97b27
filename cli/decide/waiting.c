/* One line for each outcome that waits in a journal. */
#include "decide/reconcile.h"
#include "text/error.h"
#include "text/json.h"
#include "text/text.h"

static const char *state_name(enum idem_journal_state state)
{
    switch (state) {
    case IDEM_JOURNAL_WAITING:
        return "waiting";
    case IDEM_JOURNAL_IN_USE:
        return "in_use";
    case IDEM_JOURNAL_RECORDED:
        return "recorded";
    case IDEM_JOURNAL_LOST:
        return "lost";
    case IDEM_JOURNAL_DAMAGED:
        return "damaged";
    case IDEM_JOURNAL_NEWER:
        return "newer";
    }
    return "unknown";
}

bool cli_waiting_known(const struct idem_journal_info *info)
{
    return info->fence != 0;
}

static void print_word(struct idem_slice s)
{
    if (s.len == 0) {
        (void)putchar('-');
    }
    cli_print_escaped(stdout, s);
    (void)fputs("  ", stdout);
}

/* recorded  completed  2026-11-21T08:24:00.123Z  -  order-42  4f1c...idj */
static void print_row(const struct idem_journal_info *info,
                      enum idem_journal_state state, bool dry_run)
{
    char when[32] = "-";

    if (cli_waiting_known(info)) {
        cli_time_text(info->written_ms, when);
    }
    (void)printf("%s%-8s  %-9s  %-24s  ", dry_run ? "would be " : "",
                 state_name(state),
                 cli_waiting_known(info)
                     ? idem_status_name(info->outcome.status)
                     : "-",
                 when);
    print_word(info->scope);
    print_word(info->key);
    cli_print_escaped(stdout, idem_str(info->name));
    (void)putchar('\n');
}

static void fill_outcome(struct cli_json *json,
                         const struct idem_journal_info *info)
{
    const struct idem_outcome *outcome = &info->outcome;

    cli_json_text(json, "status", idem_status_name(outcome->status));
    cli_json_bytes(json, "store", info->store_url);
    cli_json_hex(json, "id", idem_bytes(info->id, sizeof(info->id)));
    cli_json_count(json, "fence", info->fence);
    cli_json_ms(json, "written_ms", info->written_ms);
    cli_json_count(json, "result_len", outcome->result.bytes.len);
    cli_json_bool(json, "not_kept", outcome->result.not_kept);
    if (outcome->text.len > 0) {
        cli_json_bytes(json, "text", outcome->text);
    }
}

static int print_json(const struct idem_journal_info *info,
                      enum idem_journal_state state, bool dry_run,
                      const struct idem_error *error)
{
    struct cli_json json;
    int status;

    cli_json_init(&json);
    cli_json_text(&json, "state", state_name(info->state));
    if (dry_run) {
        cli_json_text(&json, "would_be", state_name(state));
    }
    cli_json_bytes(&json, "entry", idem_str(info->name));
    if (info->key.len > 0) {
        cli_json_bytes(&json, "scope", info->scope);
        cli_json_bytes(&json, "key", info->key);
    }
    if (cli_waiting_known(info)) {
        fill_outcome(&json, info);
    }
    if (error->code != 0) {
        cli_json_text(&json, "problem", idem_error_name(error->code));
        cli_json_text(&json, "why", error->text);
    }
    status = cli_json_print(&json);
    cli_json_finish(&json);
    return status;
}

int cli_waiting_print(const struct cli_waiting_style *style,
                      const struct idem_journal_info *info,
                      enum idem_journal_state state,
                      const struct idem_error *error)
{
    if (style->json) {
        return print_json(info, state, style->dry_run, error);
    }
    print_row(info, state, style->dry_run);
    if (error->code != 0) {
        (void)fflush(stdout);
        cli_say("%s", error->text);
    }
    return 0;
}
