/* Prints recorded output. */
#include "run/frames.h"

#include "process/descriptors.h"

#include <errno.h>

uint64_t frames_payload(const struct idem_form *form)
{
    struct idem_slice rest = form->bytes;
    struct idem_slice piece;
    enum idem_stream stream;
    uint64_t sum = 0;

    while (idem_form_next(form, &rest, &stream, &piece)) {
        sum += piece.len;
    }
    return sum;
}

void cli_form_write(const struct idem_form *form, int out, int err,
                    int *ret_out_error)
{
    struct idem_slice rest = form->bytes;
    struct idem_slice piece;
    enum idem_stream stream;

    *ret_out_error = 0;
    while (idem_form_next(form, &rest, &stream, &piece)) {
        int *fd = stream == IDEM_STREAM_STDOUT ? &out : &err;

        if (*fd >= 0 && io_write_all(*fd, piece.base, piece.len) != 0) {
            *ret_out_error = fd == &out ? errno : *ret_out_error;
            *fd = -1;
        }
    }
}
