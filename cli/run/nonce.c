/* The nonce of the one attempt that a run may begin. */
#include "run/run.h"

#include "process/host.h"

static int draw(void *ctx, void *buf, size_t len)
{
    struct run_nonce *nonce = ctx;

    if (nonce->is_due && len == sizeof(nonce->bytes)) {
        nonce->is_due = false;
        memcpy(buf, nonce->bytes, len);
        return 0;
    }
    return cli_random(buf, len);
}

struct idem_host run_nonce_host(struct run_nonce *nonce)
{
    struct idem_host host = {.ctx = nonce, .random = draw};

    return host;
}
