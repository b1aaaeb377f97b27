/* What reads a table's stream: a line of stdin is an event, which is added up; the
 * answer is a line with the number of requests in it.
 *
 *     sum PLACE */
#include <idem/dynamodb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;

    if (argc != 2) {
        return 1;
    }
    while ((len = getline(&line, &cap, stdin)) > 0) {
        struct idem_error error = {0};
        uint64_t requests = 0;

        if (idem_dynamodb_limit_sum(argv[1], idem_bytes(line, (size_t)len),
                                    &requests, &error) != 0) {
            (void)printf("%s\n", error.text);
        } else {
            (void)printf("%llu\n", (unsigned long long)requests);
        }
        (void)fflush(stdout);
    }
    free(line);
    return 0;
}
