/* Standard output: that it is there, and that everything reached it. */
#include "text/output.h"

#include "text/error.h"
#include "text/exit_status.h"
#include "text/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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
