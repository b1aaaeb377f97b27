/* Our identity for the service: the access key and where it comes from.
 *
 * The sources, of which the first that is set up is used; see aws/client/source.h:
 *
 *     environment -> web identity -> profile -> container -> instance
 *
 * Keys of the environment are read once. Every other source is asked by a thread
 * that lives as long as that takes, and may wait: it reads files, runs a program,
 * does one HTTP exchange after the other, with a time limit on each. So a source
 * reads from top to bottom, and the client, which must not wait, never does:
 * get() answers "they are being fetched" meanwhile. No thread waits for the next
 * renewal: get() itself starts one when the time has come, some five minutes
 * before the end, and goes on giving the old ones until the new ones are there.
 * There is one fetch at a time. If it fails, what we have is used to its end and
 * the source is asked again after a pause.
 */
#ifndef IDEM_AWS_CLIENT_CREDENTIALS_H
#define IDEM_AWS_CLIENT_CREDENTIALS_H

#include "aws/client/settings.h"

#define IDEM__AWS_KEY_MAX 128
#define IDEM__AWS_TOKEN_MAX 16384

/* Never logged, and no part of any error. */
struct idem__aws_credentials {
    uint64_t serial; /* Another one for each that a source gave. */
    char access_key[IDEM__AWS_KEY_MAX + 1];
    char secret_key[IDEM__AWS_KEY_MAX + 1];
    char token[IDEM__AWS_TOKEN_MAX + 1]; /* "": none. */
    int64_t expires_ms;                  /* Epoch; IDEM_NEVER: they do not. */
};

/* Overwrites the whole struct with zeros, for good. */
void idem__aws_credentials_wipe(struct idem__aws_credentials *credentials);

/* Copies a value that goes into a header, which must be printable and without blanks.
 * Errors do not show the value itself. IDEM_ECONFIG: it is too long, or has another
 * character. */
int idem__aws_copy_value(const char *name, struct idem_slice value, char *buf,
                         size_t cap, struct idem_error *error);

/* Sets access key, secret key and token, which never expire, by the rules of
 * idem__aws_copy_value(). */
int idem__aws_credentials_set(struct idem__aws_credentials *ret,
                              const char *const names[3],
                              const struct idem_slice values[3],
                              struct idem_error *error);

/* A source of credentials. Called under the lock of the client that uses it. */
struct idem__aws_provider {
    const char *name; /* For errors: "the environment". Set again by get(). */

    /* Sets *@ret to the credentials to sign with now; they stay as they are
     * until the next call. @now_ms is the service's time as well as it is known.
     *
     * Returns 0; or 1, "they are being fetched": the client keeps the request
     * back and asks again at each idem__aws_work(); or a code with a sentence
     * that names the source and says what to do:
     *
     * IDEM_ECONFIG       There are none, or they are not usable.
     * IDEM_EUNAVAILABLE  The source did not answer; the next call tries again.
     * IDEM_ENOMEM
     */
    int (*get)(struct idem__aws_provider *provider, int64_t now_ms,
               const struct idem__aws_credentials **ret,
               struct idem_error *ret_error);

    /* The service says that the credentials with @serial, which get() gave, have
     * expired: fetch anew, unless that was done since. True if the source can;
     * then the client signs the refused request once more. May be NULL: it
     * cannot. */
    bool (*expired)(struct idem__aws_provider *provider, uint64_t serial);

    /* Wipes and frees. */
    void (*close)(struct idem__aws_provider *provider);
};

/* Credentials from the sources that may have to be waited for. @env is copied,
 * and so is @region, the one of the store ("": none), for roles where the user
 * names no other. */
int idem__aws_provider_chain(const struct idem__aws_env *env,
                             const char *region,
                             struct idem__aws_provider **ret_provider,
                             struct idem_error *ret_error);

/* The one or the other: what every AWS user expects. Errors as above; of the
 * chain only IDEM_ENOMEM, the rest when it is asked. */
int idem__aws_provider_default(const struct idem__aws_env *env,
                               const char *region,
                               struct idem__aws_provider **ret_provider,
                               struct idem_error *ret_error);

/* NULL is allowed. */
void idem__aws_provider_close(struct idem__aws_provider *provider);

#endif
