/* AWS Signature Version 4: the Authorization header of a request.
 *
 *     key       = HMAC chain over secret, date, region, service   (cached)
 *     canonical = method, path, query, headers, names, SHA-256 of the body
 *     to sign   = algorithm, time, date/region/service, SHA-256 of canonical
 *     signature = HMAC(key, to sign)
 *
 * The signer signs exactly the parts that it is given, which are sent as they are. It
 * keeps the key of the last (secret, date, region, service), with both blocks of the
 * HMAC already hashed, and allocates nothing.
 */
#ifndef IDEM_AWS_CLIENT_SIGV4_H
#define IDEM_AWS_CLIENT_SIGV4_H

#include "aws/client/clock.h"
#include "aws/client/credentials.h"
#include "base/hash.h"

struct idem__sigv4_header {
    struct idem_slice name;  /* Lower case. */
    struct idem_slice value; /* As sent, without spaces around it or runs of
                                spaces in it. */
};

struct idem__sigv4_request {
    struct idem_slice method; /* "POST". */
    struct idem_slice path;   /* In canonical form: "/". */
    struct idem_slice query;  /* Encoded and sorted; len 0: none. */
    const struct idem__sigv4_header *headers; /* Sorted by name, each name once;
                                                 host and x-amz-date (which is
                                                 @stamp) are among them. */
    size_t headers_len;
    struct idem_slice body;
};

/* A signer; zeroed: nothing is cached. One thread at a time. */
struct idem__sigv4 {
    struct idem__hmac_key key;
    bool cached;
    char date[8];
    char region[64];
    char service[32];
    char secret[IDEM__AWS_KEY_MAX + 1];
    uint64_t derived; /* How often a key was derived, for tests. */
};

/* Room for any Authorization value with up to 16 headers of usual names. */
#define IDEM__SIGV4_LEN_MAX 1024

/* Writes the value of the Authorization header with a NUL to @buf of @cap bytes,
 * and its length without the NUL to @ret_len.
 *
 * IDEM_EINVALID  It does not fit, or region or service are too long.
 * IDEM_ENOMEM    libcrypto failed.
 */
int idem__sigv4_sign(struct idem__sigv4 *signer,
                     const struct idem__aws_credentials *credentials,
                     const char *region, const char *service,
                     const char stamp[IDEM__AWS_STAMP_LEN + 1],
                     const struct idem__sigv4_request *request, char *buf,
                     size_t cap, size_t *ret_len);

/* Overwrites the key with zeros. */
void idem__sigv4_finish(struct idem__sigv4 *signer);

#endif
