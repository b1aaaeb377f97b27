/* The identity of a record: its scope and key, hashed. */
#include "base/bytes.h"
#include "base/hash.h"

int idem_id(struct idem_slice scope, struct idem_slice key,
            uint8_t ret_id[IDEM_ID_LEN])
{
    uint8_t scope_len[8];
    uint8_t key_len[8];
    struct idem_slice parts[5] = {
        idem_str("idem1"), {scope_len, 8}, scope, {key_len, 8}, key,
    };

    if (key.len == 0 || key.len > IDEM_KEY_MAX || scope.len > IDEM_SCOPE_MAX) {
        return IDEM_EINVALID;
    }
    idem__put_u64(scope_len, scope.len);
    idem__put_u64(key_len, key.len);
    return idem__sha256(parts, 5, ret_id);
}
