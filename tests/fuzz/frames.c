/* What idem run records. The first byte of the input says what the rest is:
 *
 * - a recording that may be damaged. It is written out whole or not at all, and
 *   what is written is the bytes of its frames, each stream's in its place.
 * - a command's output in pieces. What was recorded gives each stream back byte
 *   for byte, in as few frames as there may be (none for one
 *   stream alone), and never takes more than it may;
 *   or it was dropped, and says so.
 * - the line that says how it ended: no other number than the one in it.
 */
#include "record/record.h"
#include "run/frames.h"
#include "fuzz.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    STREAMS = 2
};

/* Bytes that grow. */
struct pile {
    char *bytes;
    size_t len;
};

static void pile_add(struct pile *pile, struct idem_slice more)
{
    pile->bytes = realloc(pile->bytes, pile->len + more.len + 1);
    must(pile->bytes != NULL);
    if (more.len > 0) {
        memcpy(pile->bytes + pile->len, more.base, more.len);
    }
    pile->len += more.len;
}

static void must_hold(int fd, const struct pile *want)
{
    char *got = malloc(want->len + 1);

    must(got != NULL);
    must(pread(fd, got, want->len + 1, 0) == (ssize_t)want->len);
    must(want->len == 0 || memcmp(got, want->bytes, want->len) == 0);
    free(got);
}

/* @want_rc: whether it is damaged; @want: what each stream must hold then. */
static void write_out(const struct idem_result *result, int want_rc,
                      const struct pile want[STREAMS])
{
    static const struct pile nothing;
    static int fds[STREAMS] = {-1, -1};
    struct idem_form form;
    int out_error = 0;
    int i;

    idem_form_read(result, &form);
    must((form.kind == IDEM_FORM_DAMAGED) == (want_rc != 0));
    for (i = 0; i < STREAMS; i++) {
        if (fds[i] < 0) {
            fds[i] = memfd_create("stream", MFD_CLOEXEC);
        }
        must(ftruncate(fds[i], 0) == 0 && lseek(fds[i], 0, SEEK_SET) == 0);
    }
    cli_form_write(&form, fds[0], fds[1], &out_error);
    for (i = 0; i < STREAMS; i++) {
        must_hold(fds[i], want_rc == 0 ? &want[i] : &nothing);
    }
    must(frames_payload(&form) ==
         (want_rc == 0 ? want[0].len + want[1].len : 0));
    cli_form_write(&form, -1, -1, &out_error);
}

/* 0 with what each stream holds, or -1; reads the drawing of <idem/form.h>. */
static int take_apart(struct idem_slice bytes, struct pile piles[STREAMS],
                      size_t *ret_frames)
{
    const uint8_t *p = bytes.base;
    size_t left = bytes.len;

    for (*ret_frames = 0; left > 0; (*ret_frames)++) {
        uint64_t len;

        if (left < 5 || p[0] < 1 || p[0] > 2) {
            return -1;
        }
        len = ((uint64_t)p[1] << 24) + ((uint64_t)p[2] << 16) +
              ((uint64_t)p[3] << 8) + p[4];
        if (len == 0 || len > left - 5) {
            return -1;
        }
        pile_add(&piles[p[0] - 1], idem_bytes(p + 5, len));
        p += 5 + len;
        left -= 5 + len;
    }
    return 0;
}

static void read_recording(struct idem_slice bytes)
{
    struct idem_result result = {.bytes = bytes,
                                 .content_type =
                                     idem_str(IDEM_FORM_FRAMES_TYPE)};
    struct pile piles[STREAMS] = {{NULL, 0}};
    size_t frames;
    int rc = take_apart(bytes, piles, &frames);

    write_out(&result, rc, piles);
    free(piles[0].bytes);
    free(piles[1].bytes);
}

static void record(struct tape *tape)
{
    static const size_t limits[] = {0, 5, 6, 40, 1000, 1 << 20};
    struct pile printed[STREAMS] = {{NULL, 0}};
    struct pile kept[STREAMS] = {{NULL, 0}};
    size_t max = limits[take_up_to(tape, 5)];
    struct idem_result result = {.bytes = {NULL, 0}};
    struct recorder recorder;
    unsigned last = STREAMS;
    size_t frames = 0;
    size_t read;
    int i;

    recorder_init(&recorder, max);
    while (tape->left > 0) {
        unsigned stream = take_up_to(tape, STREAMS - 1);
        struct idem_slice piece = take_bytes(tape, 70);

        recorder_add(&recorder, (enum frame_stream)(stream + 1), piece.base,
                     piece.len);
        if (piece.len > 0) {
            pile_add(&printed[stream], piece);
            frames += stream != last;
            last = stream;
        }
    }
    recorder_result(&recorder, &result);
    must(same_bytes(result.content_type,
                    idem_str(printed[1].len > 0 ? IDEM_FORM_FRAMES_TYPE
                                                : IDEM_FORM_BYTES_TYPE)) ||
         result.not_kept);
    must(result.not_kept == (printed[0].len + printed[1].len > max));
    if (result.not_kept) {
        must(result.bytes.len == 0);
    } else {
        if (printed[1].len > 0) {
            must(take_apart(result.bytes, kept, &read) == 0 && read == frames);
        } else {
            pile_add(&kept[0], result.bytes);
        }
        result.meta = idem_str("exit 0\n");
        write_out(&result, 0, printed);
    }
    for (i = 0; i < STREAMS; i++) {
        must(result.not_kept ||
             same_bytes(idem_bytes(kept[i].bytes, kept[i].len),
                        idem_bytes(printed[i].bytes, printed[i].len)));
        free(kept[i].bytes);
        free(printed[i].bytes);
    }
    recorder_finish(&recorder);
}

/* The number in "@word N\n" at the start of @text, or in "@word N complete\n"; -1: that
 * does not stand there. */
static int number_in(const char *text, const char *word, int max)
{
    size_t len = strlen(word);
    const char *end;
    size_t digits;

    if (strncmp(text, word, len) != 0) {
        return -1;
    }
    digits = strspn(text + len, "0123456789");
    end = text + len + digits;
    if (digits == 0 || digits > 3 ||
        (*end != '\n' && strncmp(end, " complete\n", 10) != 0) ||
        atoi(text + len) > max) {
        return -1;
    }
    return atoi(text + len);
}

static void read_meta(struct idem_slice bytes)
{
    char *text = text_of(bytes);
    int want = number_in(text, "exit ", 255);

    if (want < 0) {
        want = number_in(text, "signal ", 127);
        want = want < 0 ? -1 : want + 128;
    }
    must(cli_meta_status(bytes) == want);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);

    switch (take_up_to(&tape, 2)) {
    case 0:
        read_recording(take_rest(&tape));
        break;
    case 1:
        record(&tape);
        break;
    default:
        read_meta(take_rest(&tape));
        break;
    }
    return 0;
}
