/* Standard output: that it is there, and that everything reached it. */
#include "cli.h"
#include "text/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int cli_finish_output(int status)
{
    bool failed = ferror(stdout) != 0;

    errno = 0;
    if (fflush(stdout) != 0) {
        failed = true;
    }
    cli_page_end();
    if (!failed) {
        return status;
    }
    cli_say("cannot write to standard output: %s",
            errno != 0 ? strerror(errno) : "an earlier write failed");
    clearerr(stdout);
    return status == CLI_OK || status == CLI_REPLAY ? CLI_OUTPUT_FAILED
                                                    : status;
}

/* Opened the wrong way round on purpose: reading from a standard input that was
 * closed must fail, and so must writing to such an output. */
void cli_open_std_fds(void)
{
    int fd;

    for (fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        }
    }
}

bool cli_stderr_is_tty(void)
{
    return isatty(STDERR_FILENO) == 1;
}
