/* A fixed number of operations on a SQLite store, for bench/instructions. */
#include <err.h>
#include <idem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int rc, const struct idem_error *error)
{
    if (rc != 0) {
        errx(1, "%s: %s", idem_error_name(rc), error->text);
    }
}

/* One begin, and if the key is new one complete. */
static void run(struct idem_store *store, unsigned long n)
{
    static const char bytes[1024] = "x";
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_result result = {
        .bytes = idem_bytes(bytes, sizeof(bytes)),
    };
    struct idem_attempt *attempt;
    struct idem_error error;
    char key[64];

    (void)snprintf(key, sizeof(key), "order-%040lu", n);
    request.key = idem_str(key);
    request.owner = idem_str("count");
    request.on_expired_lease = IDEM_HOLD;
    check(idem_begin(store, &request, &attempt, &error), &error);
    if (attempt->verdict == IDEM_STARTED) {
        check(idem_complete(attempt, &result, &error), &error);
    }
    idem_attempt_destroy(attempt);
}

int main(int argc, char **argv)
{
    struct idem_store *store;
    struct idem_error error;
    unsigned long n;
    unsigned long i;
    int is_new;

    if (argc != 4) {
        errx(2, "usage: bench-count STORE-URL new|replay N");
    }
    is_new = strcmp(argv[2], "new") == 0;
    n = strtoul(argv[3], NULL, 10);
    check(idem_open(argv[1], NULL, &store, &error), &error);
    for (i = 0; i < n; i++) {
        run(store, is_new ? i : 0);
    }
    idem_close(store);
    return 0;
}
