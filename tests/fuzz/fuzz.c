/* Checks, and the input as a tape. */
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void fuzz_fail(const char *file, int line, const char *what)
{
    static FILE *out;

    out = fdopen(2, "w"); /* stderr may have been hushed. */
    (void)fprintf(out, "fuzz: %s:%d: this does not hold: %s\n", file, line,
                  what);
    (void)fflush(out);
    abort();
}

bool same_bytes(struct idem_slice a, struct idem_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.base, b.base, a.len) == 0);
}

void fuzz_hush(void)
{
    stderr = fopen("/dev/null", "we");
    must(stderr != NULL);
}

static char folder[256];
static int home = -1;

static void remove_folder(void)
{
    (void)rmdir(folder);
}

void fuzz_enter_folder(void)
{
    const char *parent = getenv("TMPDIR");

    if (home < 0) {
        home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)snprintf(folder, sizeof(folder), "%s/fuzz-XXXXXX",
                       parent == NULL ? "/tmp" : parent);
        must(home >= 0 && mkdtemp(folder) != NULL);
        must(atexit(remove_folder) == 0);
    }
    must(chdir(folder) == 0);
}

void fuzz_leave_folder(void)
{
    must(fchdir(home) == 0);
}

unsigned fuzz_clean_folder(void)
{
    DIR *here = opendir(".");
    const struct dirent *entry;
    unsigned n = 0;

    must(here != NULL);
    while ((entry = readdir(here)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 &&
            strcmp(entry->d_name, "..") != 0) {
            must(unlink(entry->d_name) == 0);
            n++;
        }
    }
    (void)closedir(here);
    return n;
}

struct tape tape_of(const uint8_t *data, size_t len)
{
    return (struct tape){data, len};
}

uint8_t take_u8(struct tape *tape)
{
    if (tape->left == 0) {
        return 0;
    }
    tape->left--;
    return *tape->at++;
}

uint64_t take_u64(struct tape *tape)
{
    uint64_t n = 0;
    int i;

    for (i = 0; i < 8; i++) {
        n = n << 8 | take_u8(tape);
    }
    return n;
}

unsigned take_up_to(struct tape *tape, unsigned max)
{
    return take_u8(tape) % (max + 1);
}

bool take_bool(struct tape *tape)
{
    return (take_u8(tape) & 1) != 0;
}

/* Short lengths are one byte; the longest one byte names is written out. */
struct idem_slice take_bytes(struct tape *tape, size_t max)
{
    size_t len = take_u8(tape);
    struct idem_slice bytes;

    if (len == 255) {
        len += (size_t)take_u8(tape) << 8;
        len += take_u8(tape);
    }
    len = len > max ? max : len;
    len = len > tape->left ? tape->left : len;
    bytes = idem_bytes(tape->at, len);
    tape->at += len;
    tape->left -= len;
    return bytes;
}

struct idem_slice take_rest(struct tape *tape)
{
    struct idem_slice bytes = idem_bytes(tape->at, tape->left);

    tape->at += tape->left;
    tape->left = 0;
    return bytes;
}

char *text_of(struct idem_slice bytes)
{
    char *text = malloc(bytes.len + 1);

    must(text != NULL);
    if (bytes.len > 0) {
        memcpy(text, bytes.base, bytes.len);
    }
    text[bytes.len] = '\0';
    return text;
}

int64_t take_ms(struct tape *tape)
{
    static const int64_t turning[] = {
        0,
        1,
        IDEM_LEASE_MIN_MS,
        60000,
        86400000,
        FUZZ_NOW_MS - 5000,
        FUZZ_NOW_MS - 1,
        FUZZ_NOW_MS,
        FUZZ_NOW_MS + 1,
        FUZZ_NOW_MS + 5000,
        FUZZ_BOOT_MS - 1,
        FUZZ_BOOT_MS,
        FUZZ_BOOT_MS + 1,
        IDEM_DURATION_MAX_MS,
        IDEM_NEVER - 1,
        IDEM_NEVER,
    };
    enum {
        TURNING = sizeof(turning) / sizeof(turning[0])
    };
    unsigned which = take_u8(tape);

    if (which < 128) {
        return turning[which % TURNING];
    }
    if (which < 192) {
        return FUZZ_NOW_MS - 32768 + take_u8(tape) * 256 + take_u8(tape);
    }
    return (int64_t)(take_u64(tape) >> 1);
}
