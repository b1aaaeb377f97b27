/* A function that is linked with the library, for the tests. */
#include <idem/lambda.h>

static int handle(struct idem_lambda_call *call)
{
    return idem_lambda_answer(call, call->event);
}

int main(void)
{
    return idem_lambda_main(handle);
}
