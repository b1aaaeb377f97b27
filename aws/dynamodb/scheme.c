/* libidem-dynamodb.so has no code. idem_open() finds it by the scheme of a URL, and with it
 * libidem-aws, which it is linked with and which has the kind. */
#include <idem/dynamodb.h>

/* Without this reference a linker may drop libidem-aws as unused. */
extern const struct idem_store_kind *const idem_dynamodb_scheme;
const struct idem_store_kind *const idem_dynamodb_scheme = &idem_dynamodb_kind;
