/* --status: several statuses as one list of names. */
#include "options/record_statuses.h"

#include "options/command.h"
#include "options/usage.h"
#include "text/text.h"

static const enum idem_status all_statuses[] = {
    IDEM_STATUS_IN_PROGRESS, IDEM_STATUS_COMPLETED, IDEM_STATUS_FAILED,
    IDEM_STATUS_UNKNOWN,     IDEM_STATUS_RELEASED,  IDEM_STATUS_RETRY};

#define ALL_STATUSES_LEN (sizeof(all_statuses) / sizeof(all_statuses[0]))

/* The bit of the status whose name is the @len bytes at @name; 0 if none. */
static unsigned status_bit(const char *name, size_t len)
{
    size_t i;

    for (i = 0; i < ALL_STATUSES_LEN; i++) {
        const char *known = idem_status_name(all_statuses[i]);

        if (strlen(known) == len && memcmp(known, name, len) == 0) {
            return 1u << all_statuses[i];
        }
    }
    return 0;
}

int cli_statuses(const struct cli_command *command, const char *text,
                 unsigned *ret_statuses)
{
    const char *p = text;
    unsigned bits = 0;

    while (p != NULL) {
        size_t len = strcspn(p, ",");
        unsigned bit = status_bit(p, len);
        char shown[64];

        if (bit == 0) {
            return cli_usage(
                command,
                "--status: \"%s\" is not one of in_progress, completed, "
                "failed, unknown, released, retry",
                cli_escape(idem_bytes(p, len), shown, sizeof(shown)));
        }
        bits |= bit;
        p = p[len] == ',' ? p + len + 1 : NULL;
    }
    *ret_statuses = bits;
    return 0;
}
