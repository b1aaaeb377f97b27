/* An HTTP request as a JSON text, which programs select from. */
#ifndef IDEM_KEY_REQUEST_H
#define IDEM_KEY_REQUEST_H

#include "base/buffer.h"

#include <idem/key.h>

/* Appends the text that idem_select_start_request() describes to @to, which is a
 * valid one unless it failed.
 *
 * IDEM_EINVALID  The name of an argument or header is not UTF-8.
 * IDEM_ENOMEM
 */
int idem__request_json(const struct idem_select_request *request,
                       struct idem__buffer *to, struct idem_error *ret_error);

/* @request as bytes for another process, and back; what is read points into
 * @bytes, except the headers, which are in @headers. Reading believes nothing.
 *
 * IDEM_EINVALID  The bytes are none of these.
 * IDEM_ENOMEM
 */
void idem__request_pack(const struct idem_select_request *request,
                        struct idem__buffer *to);
int idem__request_unpack(struct idem_slice bytes, struct idem__buffer *headers,
                         struct idem_select_request *ret_request);

/* How many bytes idem__request_pack() would add. */
size_t idem__request_packed_len(const struct idem_select_request *request);

#endif
