/* The pattern of minimal.c on a store of one's own: example-store kv:FILE ORDER */
#include "store.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_result result = {.bytes = idem_str("receipt 7")};
    struct idem_attempt *attempt;
    struct idem_store *store;
    struct idem_error error;
    struct idem_slice bytes;
    int rc;

    if (argc != 3 || idem_kind_register(&idem_kv_kind, &error) != 0 ||
        idem_open(argv[1], NULL, &store, &error) != 0) {
        fprintf(stderr, "example-store: %s\n",
                argc != 3 ? "kv:FILE ORDER" : error.text);
        return 1;
    }
    request.key = idem_str(argv[2]);
    request.on_expired_lease = IDEM_HOLD;
    rc = idem_begin(store, &request, &attempt, &error);
    if (rc != 0) {
        fprintf(stderr, "example-store: nothing was charged: %s\n", error.text);
        idem_close(store);
        return 1;
    }
    switch (attempt->verdict) {
    case IDEM_STARTED:
        printf("charging %s\n", argv[2]);
        rc = idem_complete(attempt, &result, &error);
        if (rc != 0) {
            fprintf(stderr, "example-store: charged, not recorded: %s\n",
                    error.text);
            break;
        }
        printf("STARTED receipt 7\n");
        break;
    case IDEM_REPLAY:
        bytes = attempt->record->result.bytes;
        printf("REPLAY %.*s\n", (int)bytes.len, (const char *)bytes.base);
        break;
    default: /* In progress, failed or unknown: there is no receipt. */
        fprintf(stderr, "example-store: nothing was charged: %s\n",
                idem_verdict_name(attempt->verdict));
        rc = -1;
    }
    idem_attempt_destroy(attempt);
    idem_close(store);
    return rc != 0;
}
