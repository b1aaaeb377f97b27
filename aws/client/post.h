/* The bytes of a request to AWS: its head, signed, and its body. */
#ifndef IDEM_AWS_CLIENT_POST_H
#define IDEM_AWS_CLIENT_POST_H

#include "aws/client/sigv4.h"
#include "aws/client/transport.h"

/* The head and a short body, to be sent in one piece; a long body stays where it
 * is. Zeroed: there is none. */
struct idem__aws_post {
    char *base;
    size_t cap;
    size_t head_len;
    size_t len; /* Of the head and a short body. */
};

/* Signs @request with @now_ms and writes it. @post may hold another one, whose
 * memory is taken.
 *
 * IDEM_EINVALID  Endpoint, target, type or token are too long, or no header's.
 * IDEM_ENOMEM
 */
int idem__aws_post_make(struct idem__aws_post *post,
                        const struct idem__aws_request *request,
                        struct idem__sigv4 *signer,
                        const struct idem__aws_credentials *credentials,
                        int64_t now_ms);

/* The next bytes of @post and @body to send once @sent bytes are sent: all that
 * lies in one piece; empty: that was all. */
struct idem_slice idem__aws_post_rest(const struct idem__aws_post *post,
                                      struct idem_slice body, size_t sent);

void idem__aws_post_free(struct idem__aws_post *post);

#endif
