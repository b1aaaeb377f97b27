/* How long an outcome waits for its store. */
#include "store/patience.h"

#include "options/command.h"

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
    struct idem_error error = {0};

    ret_patience->chosen_ms = 0;
    if (text == NULL || *text == '\0') {
        return 0;
    }
    if (idem_setting_read(IDEM_SETTING_STORE_TIMEOUT, "IDEM_STORE_TIMEOUT",
                          text, &ret_patience->chosen_ms, &error) != 0) {
        return cli_usage(command, "%s", error.text);
    }
    return 0;
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
