/* The disk: one page written and flushed, again and again. */
#include "load.h"

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    PAGES = 16384 /* Of the file that is written over in a circle. */
};

static void write_page(int fd, off_t at)
{
    static const char page[PAGE] = "page";

    if (pwrite(fd, page, PAGE, at) != PAGE) {
        err(1, "write");
    }
}

int main(int argc, char **argv)
{
    int over = argc == 4 && strcmp(argv[2], "over") == 0;
    struct times times = {NULL, 0, 0, 0};
    double seconds;
    int64_t until_ns;
    off_t n;
    int fd;

    if (argc != 4 || (!over && strcmp(argv[2], "append") != 0)) {
        errx(64, "usage: bench-disk FILE append|over SECONDS");
    }
    seconds = atof(argv[3]);
    fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) {
        err(1, "%s", argv[1]);
    }
    for (n = 0; over && n < PAGES; n++) {
        write_page(fd, n * PAGE);
    }
    if (fsync(fd) != 0) {
        err(1, "fsync");
    }
    until_ns = now_ns() + (int64_t)(seconds * 1e9);
    for (n = 0; now_ns() < until_ns; n++) {
        int64_t start_ns = now_ns();

        write_page(fd, (over ? n % PAGES : n) * PAGE);
        if (fdatasync(fd) != 0) {
            err(1, "fdatasync");
        }
        times_add(&times, now_ns() - start_ns);
    }
    times_sort(&times);
    printf("{\"per_s\": %.1f, \"p50_us\": %u, \"p99_us\": %u}\n",
           (double)times.len / seconds, times_at(&times, 0.5),
           times_at(&times, 0.99));
    times_free(&times);
    (void)close(fd);
    return unlink(argv[1]) == 0 ? 0 : 1;
}
