/* A function that is linked with the library, for the tests: it does what its event
 * says. */
#include <idem/lambda.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* One line in the ledger for each time that it ran. */
static void effect(void)
{
    int fd = open("ledger", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, "effect\n", 7) != 7) {
        abort();
    }
    (void)close(fd);
}

static bool says(const struct idem_lambda_call *call, const char *word)
{
    return strstr(call->event.base, word) != NULL;
}

static int handle(struct idem_lambda_call *call)
{
    char text[320];
    char *big;

    effect();
    if (says(call, "do-fail")) {
        return idem_lambda_error(call, "Poison", "this one never works");
    }
    if (says(call, "do-release")) {
        return idem_lambda_release(call, "Refused", "before anything was done");
    }
    if (says(call, "do-silent-fail")) {
        return 1;
    }
    if (says(call, "do-exit")) {
        _exit(0);
    }
    if (says(call, "do-sleep")) {
        (void)sleep(60);
    }
    if (says(call, "do-words")) {
        return idem_lambda_answer(call, idem_str("no JSON"));
    }
    if (says(call, "do-nothing")) {
        return 0;
    }
    if (says(call, "do-big")) {
        big = malloc((size_t)IDEM_LAMBDA_RESPONSE_MAX + 10);
        memset(big, 'x', (size_t)IDEM_LAMBDA_RESPONSE_MAX + 9);
        big[0] = '"';
        big[(size_t)IDEM_LAMBDA_RESPONSE_MAX + 8] = '"';
        (void)idem_lambda_answer(
            call, idem_bytes(big, (size_t)IDEM_LAMBDA_RESPONSE_MAX + 9));
        free(big);
        return 0;
    }
    (void)snprintf(
        text, sizeof(text),
        "{\"statusCode\": 200, \"fence\": %llu, \"attempts\": %u, "
        "\"takeover\": %s, \"left\": %d, \"at\": %lld, \"id\": \"%s\"}",
        call->attempt == NULL ? 0ULL : (unsigned long long)call->attempt->fence,
        call->attempt == NULL ? 0U : call->attempt->attempts,
        call->attempt != NULL && call->attempt->takeover ? "true" : "false",
        idem_lambda_remaining_ms(call) > 0, (long long)call->event_ms,
        call->request_id);
    return idem_lambda_answer(call, idem_str(text));
}

int main(void)
{
    return idem_lambda_main(handle);
}
