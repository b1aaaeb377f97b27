/* The header lines of a request to AWS, signed, as libcurl takes them. */
#ifndef IDEM_AWS_CLIENT_POST_H
#define IDEM_AWS_CLIENT_POST_H

#include "aws/client/curl.h"
#include "aws/client/sigv4.h"
#include "aws/client/request.h"

/* Five that are signed, the signature, and two that libcurl is to leave out. */
#define IDEM__AWS_POST_LINES 8

/* Zeroed: there are none. */
struct idem__aws_post {
    struct curl_slist lines[IDEM__AWS_POST_LINES]; /* Linked; in @base. */
    char *base;
    size_t cap;
};

/* Signs @request with @now_ms and writes its lines. @post may hold those of another
 * one, whose memory is taken.
 *
 * IDEM_EINVALID  Endpoint, target, type or token are too long, or no header's.
 * IDEM_ENOMEM
 */
int idem__aws_post_make(struct idem__aws_post *post,
                        const struct idem__aws_request *request,
                        struct idem__sigv4 *signer,
                        const struct idem__aws_credentials *credentials,
                        int64_t now_ms);

void idem__aws_post_free(struct idem__aws_post *post);

#endif
