/* Registers the kinds of libidem-aws and libidem-postgres, for programs that have these
 * libraries inside. */
#include <idem.h>
#include <idem/dynamodb.h>
#include <stdlib.h>

#ifdef WITH_POSTGRES
#include <idem/postgres.h>
#endif

static void register_kind(const struct idem_store_kind *kind)
{
    if (idem_kind_register(kind, NULL) != 0) {
        abort();
    }
}

__attribute__((constructor)) static void register_kinds(void)
{
    register_kind(&idem_dynamodb_kind);
#ifdef WITH_POSTGRES
    register_kind(&idem_postgres_kind);
    register_kind(&idem_postgresql_kind);
#endif
}
