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

/* Writes @form out, and compares what each stream got. */
static void check_written(const struct idem_form *form, const char *out,
                          const char *err)
{
    int fds[2] = {memfd_create("out", 0), memfd_create("err", 0)};
    int out_error = 0;

    cli_form_write(form, fds[0], fds[1], &out_error);
    assert_int_equal(out_error, 0);
    assert_string_equal(text_in(fds[0]), out);
    assert_string_equal(text_in(fds[1]), err);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* Each stream gets its bytes; neighbours of one stream are one frame. */
TEST(recorder, givesBackWhatWasPrinted)
{
    static const char want[] = "\1\0\0\0\5hello\2\0\0\0\1!\1\0\0\0\3 ok";
    struct idem_result result = {.not_kept = true};
    struct idem_form form;
    struct recorder recorder;

    recorder_init(&recorder, 1000);
    recorder_add(&recorder, FRAME_STDOUT, "hel", 3);
    recorder_add(&recorder, FRAME_STDOUT, "lo", 2);
    recorder_add(&recorder, FRAME_STDERR, "", 0);
    recorder_add(&recorder, FRAME_STDERR, "!", 1);
    recorder_add(&recorder, FRAME_STDOUT, " ok", 3);
    recorder_result(&recorder, &result);
    assert_false(result.not_kept);
    assert_text(result.content_type, IDEM_FORM_FRAMES_TYPE);
    assert_slice(result.bytes, idem_bytes(want, sizeof(want) - 1));
    idem_form_read(&result, &form);
    assert_int_equal(frames_payload(&form), 9);
    check_written(&form, "hello ok", "!");
    recorder_finish(&recorder);
}

/* Output to standard output alone is on record as it is; so is none. */
TEST(recorder, framesOnlyWhereThereAreTwoStreams)
{
    static const struct {
        enum frame_stream streams[3];
        const char *type;
        struct idem_slice want;
    } rows[] = {
        {{FRAME_STDOUT, FRAME_STDOUT, 0}, IDEM_FORM_BYTES_TYPE, {"abab", 4}},
        {{0}, IDEM_FORM_BYTES_TYPE, {"", 0}},
        {{FRAME_STDERR, 0, 0}, IDEM_FORM_FRAMES_TYPE, {"\2\0\0\0\2ab", 7}},
        {{FRAME_STDOUT, FRAME_STDERR, 0},
         IDEM_FORM_FRAMES_TYPE,
         {"\1\0\0\0\2ab\2\0\0\0\2ab", 14}},
    };

    EACH(row, rows) {
        struct idem_result result = {.not_kept = true};
        struct recorder recorder;
        size_t at;

        recorder_init(&recorder, 1000);
        for (at = 0; at < 3 && row->streams[at] != 0; at++) {
            recorder_add(&recorder, row->streams[at], "ab", 2);
        }
        recorder_result(&recorder, &result);
        assert_text(result.content_type, row->type);
        assert_slice(result.bytes, row->want);
        recorder_finish(&recorder);
    }
}

/* Nothing was printed: nothing is recorded, and that is kept. */
TEST(recorder, recordsSilence)
{
    struct idem_result result = {.not_kept = true};
    struct recorder recorder;

    recorder_init(&recorder, 0);
    recorder_result(&recorder, &result);
    assert_false(result.not_kept);
    assert_int_equal(result.bytes.len, 0);
    recorder_finish(&recorder);
}

/* Output is kept up to its limit, whatever its headers take, and dropped above. */
TEST(recorder, dropsWhatIsTooLong)
{
    size_t max;

    for (max = 0; max <= 12; max++) {
        struct idem_result result = {.not_kept = false};
        struct recorder recorder;

        recorder_init(&recorder, max);
        recorder_add(&recorder, FRAME_STDOUT, "abc", 3);
        recorder_add(&recorder, FRAME_STDOUT, "defg", 4);
        recorder_add(&recorder, FRAME_STDOUT, "", 0);
        recorder_result(&recorder, &result);
        assert_int_equal(result.not_kept, max < 7);
        assert_int_equal(result.bytes.len, max < 7 ? 0 : 7);
        recorder_finish(&recorder);
    }
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

/* Half of a damaged recording is not printed as if it were the whole. */
TEST(frames, arePrintedWholeOrNot)
{
    static const struct {
        const char *bytes;
        size_t len;
        bool whole;
    } rows[] = {
        {"", 0, true},
        {"\1\0\0\0\1a", 6, true},
        {"\1\0\0\0\1a\1", 7, false},
        {"\1\0\0\0\1a\1\0\0\0", 10, false},
        {"\1\0\0\0\1a\1\0\0\0\1", 11, false},
        {"\1\0\0\0\1a\0\0\0\0\1b", 12, false},
        {"\1\0\0\0\1a\3\0\0\0\1b", 12, false},
        {"\1\0\0\0\1a\2\0\0\0\0", 11, false},
        {"\1\0\0\0\1a\2\xff\xff\xff\xff"
         "b",
         12, false},
    };

    EACH(row, rows) {
        struct idem_form form = form_of(idem_bytes(row->bytes, row->len));

        assert_int_equal(form.kind != IDEM_FORM_DAMAGED, row->whole);
        check_written(&form, row->whole && row->len > 0 ? "a" : "", "");
    }
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

/* The line that says how a command ended, as a shell would say it. */
TEST(meta, isAnExitStatus)
{
    static const struct {
        const char *meta;
        int want;
    } rows[] = {
        {"exit 0\n", 0},
        {"exit 255\n", 255},
        {"exit 256\n", -1},
        {"exit 1", -1},
        {"exit -1\n", -1},
        {"exit \n", -1},
        {"exit x\n", -1},
        {"exit 0x1\n", -1},
        {"signal 9\n", 137},
        {"signal 127\n", 255},
        {"signal 128\n", -1},
        {"", -1},
        {"EXIT 0\n", -1},
        {"exit 1\nmore", 1},
        {"exit 00000000000001\n", -1},
    };

    EACH(row, rows) {
        if (cli_meta_status(idem_str(row->meta)) != row->want) {
            fail_with("\"%s\" is %d", row->meta,
                      cli_meta_status(idem_str(row->meta)));
        }
    }
}
