/* libidem-dynamodb.so: empty but for its name, by which idem_open() finds the kind of a
 * URL. It is linked with libidem-aws, which has the kind. */
#include <idem/dynamodb.h>

/* Keeps the link from being dropped as unused. */
extern const struct idem_store_kind *const idem_dynamodb_scheme;
const struct idem_store_kind *const idem_dynamodb_scheme = &idem_dynamodb_kind;
