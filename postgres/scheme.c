/* libidem-postgresql.so: empty but for its name, by which idem_open() finds the kind of a
 * URL. It is linked with libidem-postgres, which has the kind. */
#include <idem/postgres.h>

/* Keeps the link from being dropped as unused. */
extern const struct idem_store_kind *const idem_postgresql_scheme;
const struct idem_store_kind *const idem_postgresql_scheme =
    &idem_postgresql_kind;
