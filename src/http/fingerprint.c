/* The fingerprint of a request whose body comes in pieces. */
#include <idem/http.h>

#include "base/heap.h"
#include "core/fingerprint.h"

struct idem_http_fingerprint {
    struct idem__hash hash;
    uint64_t left; /* Bytes of the body that are to come. */
    bool too_many;
};

int idem_http_fingerprint_create(const struct idem_slice *parts,
                                 size_t parts_len, uint64_t body_len,
                                 struct idem_slice secret,
                                 struct idem_http_fingerprint **ret_print)
{
    struct idem_http_fingerprint *print = idem__zalloc(sizeof(*print));
    int rc;

    if (print == NULL) {
        return IDEM_ENOMEM;
    }
    rc = idem__fingerprint_start(&print->hash, secret, parts_len + 1, parts,
                                 parts_len);
    if (rc != 0) {
        idem_http_fingerprint_destroy(print);
        return rc;
    }
    idem__hash_add_u64(&print->hash, body_len);
    print->left = body_len;
    *ret_print = print;
    return 0;
}

void idem_http_fingerprint_add(struct idem_http_fingerprint *print,
                               struct idem_slice piece)
{
    if (piece.len > print->left) {
        print->too_many = true;
        return;
    }
    print->left -= piece.len;
    idem__hash_add(&print->hash, piece);
}

int idem_http_fingerprint_end(struct idem_http_fingerprint *print,
                              uint8_t ret_fingerprint[IDEM_FINGERPRINT_LEN])
{
    uint8_t fingerprint[IDEM_FINGERPRINT_LEN];
    int rc = idem__fingerprint_end(&print->hash, fingerprint);

    if (rc == 0 && (print->too_many || print->left > 0)) {
        rc = IDEM_EINVALID;
    }
    if (rc == 0) {
        memcpy(ret_fingerprint, fingerprint, sizeof(fingerprint));
    }
    idem_http_fingerprint_destroy(print);
    return rc;
}

void idem_http_fingerprint_destroy(struct idem_http_fingerprint *print)
{
    idem__free(print);
}
