/* What the work makes. */
#include "product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

void product_id(uint64_t fence, char ret_id[PRODUCT_ID])
{
    uint64_t random;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        abort();
    }
    (void)snprintf(ret_id, PRODUCT_ID, "%llu.%ld.%016llx",
                   (unsigned long long)fence, (long)getpid(),
                   (unsigned long long)random);
}

static uint64_t seed_of(const char *id)
{
    uint64_t seed = 14695981039346656037ULL;

    for (; *id != '\0'; id++) {
        seed = (seed ^ (unsigned char)*id) * 1099511628211ULL;
    }
    return seed | 1;
}

size_t product_make(const char *id, size_t len, char *buf, size_t cap)
{
    uint64_t state = seed_of(id);
    int head = snprintf(buf, cap, "%s %zu\n", id, len);
    size_t i;

    if (head < 0 || (size_t)head >= cap || len > cap) {
        return 0;
    }
    for (i = (size_t)head; i < len; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        buf[i] = (char)('a' + state % 26);
    }
    return len > (size_t)head ? len : (size_t)head;
}

bool product_check(const void *bytes, size_t len, char ret_id[PRODUCT_ID])
{
    char line[PRODUCT_ID + 24] = "";
    char *made = malloc(len + sizeof(line));
    bool same = false;
    size_t wanted;

    memcpy(line, bytes, len < sizeof(line) - 1 ? len : sizeof(line) - 1);
    if (made != NULL && sscanf(line, "%63s %zu", ret_id, &wanted) == 2) {
        same = wanted <= len + sizeof(line) &&
               product_make(ret_id, wanted, made, len + sizeof(line)) == len &&
               memcmp(made, bytes, len) == 0;
    }
    free(made);
    return same;
}
