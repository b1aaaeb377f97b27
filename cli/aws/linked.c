/* A static program, and one of the tests, contains the libraries that forward.c and
 * idem_open() would load; their kinds of stores are registered before main(). */

#include <idem.h>
#include <idem/dynamodb.h>
#include <stdlib.h>

#ifdef WITH_POSTGRES
#include <idem/postgres.h>
#endif

static void add(const struct idem_store_kind *kind)
{
    if (idem_kind_register(kind, NULL) != 0) {
        abort();
    }
}

__attribute__((constructor)) static void register_kinds(void)
{
    add(&idem_dynamodb_kind);
#ifdef WITH_POSTGRES
    add(&idem_postgres_kind);
    add(&idem_postgresql_kind);
#endif
}
