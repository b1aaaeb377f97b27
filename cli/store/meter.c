/* The meter of this host, which counts what stores are asked. */
#include "store/meter.h"

#include "text/error.h"

#include <stdlib.h>

struct idem_meter *cli_meter(void)
{
    static struct idem_meter *meter;
    static bool tried;
    const char *path = secure_getenv("IDEM_METER");
    struct idem_error error = {0};

    if (tried || path == NULL || *path == '\0') {
        return meter;
    }
    tried = true;
    if (idem_meter_open(path, IDEM_METER_CREATE, &meter, &error) != 0) {
        cli_say("IDEM_METER: %s; nothing is counted there", error.text);
        meter = NULL;
    }
    return meter;
}

void cli_metered(struct idem_open_options *options)
{
    struct idem_meter *meter = cli_meter();

    if (meter != NULL) {
        options->observe = idem_meter_observe;
        options->observe_ctx = meter;
    }
}
