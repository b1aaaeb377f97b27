/* Registers the kinds of libidem-aws, for programs that have that library inside. */
#include <idem/dynamodb.h>
#include <idem/kind.h>
#include <stdlib.h>

__attribute__((constructor)) static void register_kinds(void)
{
    if (idem_kind_register(&idem_dynamodb_kind, NULL) != 0) {
        abort();
    }
}
