/* A function that is linked with the library, for the tests. */
#include <idem/lambda.h>

#include <unistd.h>

static int handle(struct idem_lambda_call *call)
{
    const char *event = call->event.base;

    if (strstr(event, "do-fail") != NULL) {
        return idem_lambda_error(call, "Poison", "this one never works");
    }
    if (strstr(event, "do-exit") != NULL) {
        _exit(3);
    }
    if (strstr(event, "do-sleep") != NULL) {
        (void)sleep(600);
    }
    return idem_lambda_answer(call, call->event);
}

int main(void)
{
    return idem_lambda_main(handle);
}
