/* Our identity for the service: the access key and where it comes from.
 *
 * The first of these sources that is set up is used; see aws/client/source.h:
 *
 *     environment -> web identity -> profile -> container -> instance
 *
 * Keys in the environment are read once. Every other source is asked on a thread of its
 * own, which ends with the answer and may block: it reads files, runs a program, or
 * makes HTTP requests, each with a time limit. So the code of a source runs from top to
 * bottom, and the client, which must not block, does not: get() returns 1 meanwhile. No
 * thread waits for the next renewal: get() starts it about five minutes before the
 * credentials expire, and returns the old ones until the new ones are here. There is
 * one fetch at a time. If it fails, we use what we have until it expires, and ask the
 * source again after a pause.
 */
#ifndef IDEM_AWS_CLIENT_CREDENTIALS_H
#define IDEM_AWS_CLIENT_CREDENTIALS_H

#include "aws/client/settings.h"

#define IDEM__AWS_KEY_MAX 128
#define IDEM__AWS_TOKEN_MAX 16384

/* Never logged, and never part of an error. */
struct idem__aws_credentials {
    uint64_t serial; /* Differs for each set that a source returned. */
    char access_key[IDEM__AWS_KEY_MAX + 1];
    char secret_key[IDEM__AWS_KEY_MAX + 1];
    char token[IDEM__AWS_TOKEN_MAX + 1]; /* "": none. */
    int64_t expires_ms;                  /* Since 1970; IDEM_NEVER: never. */
};

/* Overwrites the whole struct with zeros, and the compiler cannot leave that out. */
void idem__aws_credentials_wipe(struct idem__aws_credentials *credentials);

/* Copies a value for a header, which must be printable and without blanks. Errors do not
 * show the value. IDEM_ECONFIG: it is too long, or has another character. */
int idem__aws_copy_value(const char *name, struct idem_slice value, char *buf,
                         size_t cap, struct idem_error *error);

/* Sets access key, secret key and token, which never expire, by the rules of
 * idem__aws_copy_value(). */
int idem__aws_credentials_set(struct idem__aws_credentials *ret,
                              const char *const names[3],
                              const struct idem_slice values[3],
                              struct idem_error *error);

/* A provider of credentials. The client calls it under its lock. */
struct idem__aws_provider {
    const char *name; /* For errors: "the environment". get() may change it. */

    /* Sets *@ret to the credentials to sign with now, which are valid until the next
     * call. @now_ms is the service's time, as far as we know it.
     *
     * Returns 0; or 1 while a source is being asked: the client then holds the request
     * back and calls again at each idem__aws_work(); or a code with a message that names
     * the source and says what to do:
     *
     * IDEM_ECONFIG       There are no credentials, or they are not usable.
     * IDEM_EUNAVAILABLE  The source did not answer; a later call tries again.
     * IDEM_ENOMEM
     */
    int (*get)(struct idem__aws_provider *provider, int64_t now_ms,
               const struct idem__aws_credentials **ret,
               struct idem_error *ret_error);

    /* Called when the service reports that the credentials with @serial, which get()
     * returned, have expired: fetches new ones, unless that has happened since. True:
     * the client signs the refused request once more. NULL: it cannot fetch new ones. */
    bool (*expired)(struct idem__aws_provider *provider, uint64_t serial);

    /* Wipes and frees. */
    void (*close)(struct idem__aws_provider *provider);
};

/* Provides credentials from the sources that may block. Copies @env and @region, which is
 * the store's ("": none) and serves for roles if the user names no other. */
int idem__aws_provider_chain(const struct idem__aws_env *env,
                             const char *region,
                             struct idem__aws_provider **ret_provider,
                             struct idem_error *ret_error);

/* Provides credentials as every AWS user expects: from the environment if it has keys,
 * else from the other sources, which report their errors when they are asked.
 * IDEM_ECONFIG: the environment's keys are not usable. IDEM_ENOMEM. */
int idem__aws_provider_default(const struct idem__aws_env *env,
                               const char *region,
                               struct idem__aws_provider **ret_provider,
                               struct idem_error *ret_error);

/* NULL is allowed. */
void idem__aws_provider_close(struct idem__aws_provider *provider);

#endif
