/* The command of an `idem run`: has its effect, and prints its product.
 *
 *     effect LEDGER LEN SLEEP_MS [defiant|failing]
 *
 * One that is defiant ignores SIGTERM; one that fails exits with 3. */
#include "ledger.h"
#include "product.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print(const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, bytes, len);

        if (n <= 0) {
            exit(1);
        }
        bytes += n;
        len -= (size_t)n;
    }
}

int main(int argc, char **argv)
{
    const char *key = getenv("IDEM_KEY");
    const char *fence = getenv("IDEM_FENCE");
    const char *attempts = getenv("IDEM_ATTEMPTS");
    size_t len = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    char *product = malloc(len + 256);
    char id[PRODUCT_ID];

    if (argc < 4 || key == NULL || fence == NULL || attempts == NULL ||
        product == NULL) {
        return 2;
    }
    if (argc > 4 && strcmp(argv[4], "defiant") == 0) {
        (void)signal(SIGTERM, SIG_IGN);
    }
    ledger_open(argv[1]);
    ledger_note(/* durable= */ false, "S %s %s %s %ld", key, fence, attempts,
                (long)getpid());
    ledger_note(/* durable= */ true, "E %s %s %ld", key, fence, (long)getpid());
    product_id(strtoull(fence, NULL, 10), id);
    len = product_make(id, len, product, len + 256);
    print(product, len);
    (void)usleep((useconds_t)strtoul(argv[3], NULL, 10) * 1000);
    free(product);
    return argc > 4 && strcmp(argv[4], "failing") == 0 ? 3 : 0;
}
