/* The kind of the store under its two names, by which idem_open() finds it. */

#include "contract/kind.h"

#include <idem/postgres.h>

const struct idem_store_kind idem_postgres_kind = {
    .abi = IDEM_STORE_ABI,
    .size = sizeof(struct idem_store_kind),
    .scheme = "postgres",
    .example = "postgres://HOST/DATABASE",
    .open = idem_postgres_open,
    .create = idem_postgres_create,
    .check = idem_postgres_check,
    .schema = idem_postgres_template,
    .completion = idem_postgres_completion,
};

const struct idem_store_kind idem_postgresql_kind = {
    .abi = IDEM_STORE_ABI,
    .size = sizeof(struct idem_store_kind),
    .scheme = "postgresql",
    .example = "postgresql://HOST/DATABASE",
    .open = idem_postgres_open,
    .create = idem_postgres_create,
    .check = idem_postgres_check,
    .schema = idem_postgres_template,
    .completion = idem_postgres_completion,
};
