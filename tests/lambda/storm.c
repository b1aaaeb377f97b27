/* A function for storms: it writes a line for each run, and the beginning of its key
 * says how it ends. */
#include <idem/lambda.h>

#include "../lib/whole_line.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* "KEY FENCE TAKEOVER", at once and before anything else. */
static void effect(const struct idem_attempt *attempt)
{
    int fd = open("ledger", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (fd < 0 ||
        !append_whole_line(fd, "%.*s %llu %d", (int)attempt->record->key.len,
                           (const char *)attempt->record->key.base,
                           (unsigned long long)attempt->fence,
                           attempt->takeover)) {
        abort();
    }
    (void)close(fd);
}

static bool is(const struct idem_lambda_call *call, const char *word)
{
    struct idem_slice key = call->attempt->record->key;

    return key.len > strlen(word) && memcmp(key.base, word, strlen(word)) == 0;
}

static int handle(struct idem_lambda_call *call)
{
    effect(call->attempt);
    (void)usleep(2000); /* So that a kill may come before this is on record. */
    if (is(call, "kill")) {
        (void)raise(SIGKILL);
    }
    if (is(call, "exit")) {
        _exit(3);
    }
    if (is(call, "hang")) {
        (void)sleep(60);
    }
    if (is(call, "fail")) {
        return idem_lambda_error(call, "Refused", "this one never works");
    }
    return idem_lambda_answer(call, idem_str("1"));
}

int main(void)
{
    return idem_lambda_main(handle);
}
