/* A static program contains the library that forward.c would load; its kinds of stores
 * are registered before main(). */

#include <idem.h>
#include <idem/dynamodb.h>
#include <stdlib.h>

__attribute__((constructor)) static void register_kinds(void)
{
    if (idem_kind_register(&idem_dynamodb_kind, NULL) != 0) {
        abort();
    }
}
