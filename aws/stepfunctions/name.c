/* The name of an execution, from scope and key. Pure. */
#include <idem/stepfunctions.h>

#define DERIVED "idem-"

/* The characters that Step Functions and its logs in CloudWatch take. */
static bool is_plain(struct idem_slice key)
{
    const uint8_t *p = key.base;
    size_t i;

    for (i = 0; i < key.len; i++) {
        if ((p[i] < 'a' || p[i] > 'z') && (p[i] < 'A' || p[i] > 'Z') &&
            (p[i] < '0' || p[i] > '9') && p[i] != '-' && p[i] != '_') {
            return false;
        }
    }
    return key.len > 0 && key.len <= IDEM_EXECUTION_NAME_MAX;
}

/* A key of this form as its own name could be the derived name of another key. */
static bool looks_derived(struct idem_slice key)
{
    size_t len = strlen(DERIVED);

    return key.len >= len && memcmp(key.base, DERIVED, len) == 0;
}

int idem_execution_name(struct idem_slice scope, struct idem_slice key,
                        char ret_name[IDEM_EXECUTION_NAME_MAX + 1])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t id[IDEM_ID_LEN];
    char *to = ret_name + strlen(DERIVED);
    int rc = idem_id(scope, key, id);
    size_t i;

    if (rc != 0) {
        return rc;
    }
    if (scope.len == 0 && is_plain(key) && !looks_derived(key)) {
        memcpy(ret_name, key.base, key.len);
        ret_name[key.len] = '\0';
        return 0;
    }
    memcpy(ret_name, DERIVED, strlen(DERIVED));
    for (i = 0; i < sizeof(id); i++) {
        *to++ = digits[id[i] >> 4];
        *to++ = digits[id[i] & 15];
    }
    *to = '\0';
    return 0;
}
