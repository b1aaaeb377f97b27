/* A program that is linked statically, as it is packed for Lambda: says how it was
 * started. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const char *handler = getenv("_HANDLER");

    (void)printf("%d arguments, %s, for %s\n", argc - 1, argv[1],
                 handler == NULL ? "nothing" : handler);
    return 0;
}
