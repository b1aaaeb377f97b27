/* What a command printed: recorded in frames, read back, written out. */
#include "record/record.h"
#include "run/frames.h"

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* What was written to @fd, as text. */
static const char *text_in(int fd)
{
    static char text[2][256];
    static unsigned next;
    char *to = text[next++ % 2];
    ssize_t n = pread(fd, to, 255, 0);

    assert_true(n >= 0);
    to[n] = '\0';
    return to;
}

/* The form of a result with these frames. */
static struct idem_form form_of(struct idem_slice frames)
{
    struct idem_result result = {.bytes = frames,
                                 .content_type =
                                     idem_str(IDEM_FORM_FRAMES_TYPE)};
    struct idem_form form;

    idem_form_read(&result, &form);
    return form;
}

/* Output of megabytes, and of many frames, comes back whole. */
TEST(recorder, growsWithTheOutput)
{
    static char chunk[100000];
    struct idem_result result = {.not_kept = true};
    struct recorder recorder;
    struct idem_form form;
    struct idem_slice piece;
    enum idem_stream stream;
    int i;

    memset(chunk, 'p', sizeof(chunk));
    recorder_init(&recorder, 16 << 20);
    for (i = 0; i < 30; i++) {
        recorder_add(&recorder, i < 15 ? FRAME_STDOUT : FRAME_STDERR, chunk,
                     sizeof(chunk));
    }
    recorder_result(&recorder, &result);
    assert_false(result.not_kept);
    idem_form_read(&result, &form);
    assert_int_equal(frames_payload(&form), 30 * sizeof(chunk));
    assert_int_equal(idem_form_frame(&result.bytes, &stream, &piece), 1);
    assert_int_equal(piece.len, 15 * sizeof(chunk));
    recorder_finish(&recorder);
}

/* A stream that fails, or is not wanted, does not keep the other from its part. */
TEST(frames, goOnWhereAStreamFails)
{
    struct idem_form form =
        form_of(idem_bytes("\1\0\0\0\1a\2\0\0\0\1b\1\0\0\0\1c\2\0\0\0\1d", 24));
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    int fd = memfd_create("err", 0);
    int out_error = 0;

    cli_form_write(&form, full, fd, &out_error);
    assert_int_equal(out_error, ENOSPC);
    assert_string_equal(text_in(fd), "bd");
    cli_form_write(&form, fd, full, &out_error);
    assert_int_equal(out_error, 0);
    cli_form_write(&form, -1, -1, &out_error);
    assert_int_equal(out_error, 0);
    (void)close(full);
    (void)close(fd);
}
