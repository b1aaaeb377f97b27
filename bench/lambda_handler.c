/* A function for bench/lambda: it answers with the number of the order. */
#include <idem/lambda.h>

#include <stdio.h>

static int handle(struct idem_lambda_call *call)
{
    char json[256];

    (void)snprintf(json, sizeof(json), "{\"charged\":true,\"order\":\"%.*s\"}",
                   (int)call->attempt->record->key.len,
                   (const char *)call->attempt->record->key.base);
    return idem_lambda_answer(call, idem_str(json));
}

int main(void)
{
    return idem_lambda_main(handle);
}
