/* libidem-postgresql.so has nothing but its name, by which idem_open() finds the kind of a
 * URL. It is linked with libidem-postgres, which defines the kind. */
#include <idem/postgres.h>

/* Without a use of the kind, the linker would drop libidem-postgres as unused. */
extern const struct idem_store_kind *const idem_postgresql_scheme;
const struct idem_store_kind *const idem_postgresql_scheme =
    &idem_postgresql_kind;
