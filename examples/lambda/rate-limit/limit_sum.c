/* Adds up an approximate limit from its table's stream, whose view has the new image.
 *
 * Requests are asked with IDEM_LIMIT_APPROXIMATE (idem limit --approximate), each for
 * one write; this function, which the stream invokes, writes down how many there were.
 *
 *     cc -o bootstrap limit_sum.c $(pkg-config --cflags --libs idem-aws)
 *     zip -r sum.zip bootstrap lib
 *
 * on the function's system, Amazon Linux 2023; lib has the libraries that
 * `ldd bootstrap` names and the runtime lacks. It runs with LIMIT_PLACE=//TABLE, IDEM_LAMBDA_SOURCE=direct, IDEM_LAMBDA_KEY='.Records[0].eventID'
 * (a batch is one operation) and IDEM_STORE=memory: or another table: records that this
 * one kept in the table would come back through its stream. A batch that comes again is
 * counted once; so do not let Lambda bisect batches.
 */
#include <idem/dynamodb.h>
#include <idem/lambda.h>

#include <stdio.h>
#include <stdlib.h>

static int handle(struct idem_lambda_call *call)
{
    struct idem_error error = {0};
    uint64_t requests = 0;
    char answer[48];

    if (idem_dynamodb_limit_sum(call->ctx, call->event, &requests, &error) !=
        0) {
        return idem_lambda_error(call, "NotSummed", "%s", error.text);
    }
    snprintf(answer, sizeof(answer), "{\"requests\": %llu}",
             (unsigned long long)requests);
    return idem_lambda_answer(call, idem_str(answer));
}

int main(void)
{
    struct idem_lambda_options options = IDEM_LAMBDA_OPTIONS_INIT;
    struct idem_error error = {0};
    struct idem_lambda *lambda;
    char *place = getenv("LIMIT_PLACE");

    if (place == NULL) {
        fprintf(stderr, "LIMIT_PLACE says which table: //TABLE\n");
        return 1;
    }
    if (idem_lambda_options_env(&options, &error) == 0) {
        options.run = handle;
        options.ctx = place;
        if (idem_lambda_open(&options, &lambda, &error) == 0) {
            (void)idem_lambda_serve(lambda, getenv("AWS_LAMBDA_RUNTIME_API"),
                                    &error);
            idem_lambda_close(lambda);
        }
    }
    fprintf(stderr, "%s\n", error.text);
    return 1;
}
