/* How long an outcome waits for its store. */
#include "store/patience.h"

#include "options/command.h"
#include "options/value.h"

#include <stdlib.h>

#define REMOTE_MS 2000
#define LOCAL_MS                                                               \
    10000 /* Away means that others hold its lock: they let it go. */
#define LONGEST_MS 3600000
#define MEBIBYTE_MS 1000 /* The time that a slow line takes for one. */

int cli_patience_choose(const struct cli_command *command,
                        struct cli_patience *ret_patience)
{
    const char *text = secure_getenv("IDEM_STORE_TIMEOUT");
    struct cli_option variable = {
        .name = "IDEM_STORE_TIMEOUT",
        .kind = CLI_DURATION,
        .target = &ret_patience->chosen_ms,
        .min = 1,
        .max = LONGEST_MS,
    };

    ret_patience->chosen_ms = 0;
    if (text == NULL || *text == '\0') {
        return 0;
    }
    return cli_set_value(command, &variable, text);
}

int64_t cli_patience_ms(const struct cli_patience *patience,
                        const struct idem_store *store, size_t bytes)
{
    int64_t ms = patience->chosen_ms;

    if (ms == 0) {
        ms = idem_store_is_remote(store) ? REMOTE_MS : LOCAL_MS;
    }
    return ms + (int64_t)(bytes >> 20) * MEBIBYTE_MS;
}

void cli_patience_set(struct idem_store *store, int64_t ms)
{
    if (ms > LONGEST_MS) {
        ms = LONGEST_MS;
    }
    (void)idem_store_set_timeout(store, ms < 1 ? 1 : ms, NULL);
}
