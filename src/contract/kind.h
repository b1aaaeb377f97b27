/* kind.h: how idem_open() finds the store of a URL.
 *
 * A URL is "SCHEME:PLACE", and each scheme has a kind of store. "sqlite" and "memory" are
 * in libidem, "dynamodb" in libidem-aws, "postgres" and "postgresql" in libidem-postgres.
 * It looks for a kind of another library in this order:
 *
 *     1. the one that this program has registered
 *     2. the symbol idem_SCHEME_kind of this program or of a library that it is linked
 *        with
 *     3. that symbol of the library, which is loaded from the system's library path,
 *        stays loaded, and may itself need other libraries
 *
 * A set-user-ID or set-group-ID program loads nothing: such a program registers its
 * kinds, as a static program does.
 */
#ifndef IDEM_CONTRACT_KIND_H
#define IDEM_CONTRACT_KIND_H

#include "contract/store.h"

#include <idem/check.h>

#pragma GCC visibility push(default)

struct idem_statement;

/* The version of the structures that libidem shares with libidem-aws and
 * libidem-postgres. All three belong to one build: raise it with any change that all
 * must have. */
#define IDEM_STORE_ABI 1

/* A kind of store. abi and size come first: the library compares them before it reads
 * any other member, and refuses a kind of another build. */
struct idem_store_kind {
    uint32_t abi;       /* IDEM_STORE_ABI */
    uint32_t size;      /* sizeof(struct idem_store_kind) */
    const char *scheme; /* "dynamodb" */
    /* Like idem_open(), with the part of the URL after "SCHEME:". */
    int (*open)(const char *place, const struct idem_open_options *options,
                struct idem_store **ret_store, struct idem_error *ret_error);
    /* Creates an empty store. An existing store stays as it is, and *@ret_created (may
     * be NULL) is then false. NULL: stores of this kind are not created. */
    int (*create)(const char *place, bool *ret_created,
                  struct idem_error *ret_error);
    /* Like idem_sqlite_check(). NULL: there is nothing to check. */
    int (*check)(const char *place, const struct idem_check_options *options,
                 idem_finding_fn *each, void *ctx,
                 struct idem_error *ret_error);
    /* Writes the text that creates an empty store with another tool to @buf of @cap
     * bytes, NUL-terminated. IDEM_EINVALID if it does not fit. NULL: there is no such
     * text. */
    int (*schema)(const char *place, char *buf, size_t cap,
                  struct idem_error *ret_error);
    /* Returns the statement with which the owner of @attempt completes it in its own
     * transaction, like idem_postgres_completion() of <idem/postgres.h>. NULL: the
     * store has no such statement. */
    int (*completion)(struct idem_attempt *attempt,
                      const struct idem_result *result,
                      struct idem_statement *ret_statement,
                      struct idem_error *ret_error);
};

/* Finds the kind of the store @url, and sets *@ret_place to the part of @url after the
 * colon. Loads a library if it has to.
 *
 * IDEM_EINVALID  @url does not begin with a scheme that has a kind.
 * IDEM_ECONFIG   The library or the package of the kind is missing, cannot be loaded,
 *                or is of another version; the sentence says which, and what to
 *                install.
 */
int idem__kind_find(const char *url, const struct idem_store_kind **ret_kind,
                    const char **ret_place, struct idem_error *ret_error);

#pragma GCC visibility pop

#endif
