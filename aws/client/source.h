/* The sources of credentials. Each is asked on a thread that may block.
 *
 *     profile     a profile in the shared files: keys or a program
 *     web         a role, for the token in the file AWS_WEB_IDENTITY_TOKEN_FILE
 *     container   the endpoint of a container's credentials
 *     instance    the metadata service of an instance, version 2
 *
 * A source that is set up but fails is an error. The next source is not asked in its
 * place, because its credentials may be another identity's.
 */
#ifndef IDEM_AWS_CLIENT_SOURCE_H
#define IDEM_AWS_CLIENT_SOURCE_H

#include "aws/client/credentials.h"
#include "aws/client/fetch.h"
#include "aws/client/settings.h"

struct idem__aws_ask {
    const struct idem__aws_env *env;
    const char *region; /* For STS if no setting names one; "": none. */
    int stop;           /* A descriptor: give up when it is readable. */
    struct idem__aws_fetch fetch; /* Room for one request. */
};

/* Each sets *@ret to credentials, which the caller wipes, and returns
 *
 * 0
 * 1                  It is not set up.
 * IDEM_ECONFIG       Its settings are wrong, or it has no credentials; the message
 *                    says what to do.
 * IDEM_EUNAVAILABLE  It did not answer, but may later.
 * IDEM_ENOMEM
 */
int idem__aws_source_web(struct idem__aws_ask *ask,
                         struct idem__aws_credentials *ret,
                         struct idem_error *ret_error);
int idem__aws_source_profile(struct idem__aws_ask *ask,
                             struct idem__aws_credentials *ret,
                             struct idem_error *ret_error);
int idem__aws_source_container(struct idem__aws_ask *ask,
                               struct idem__aws_credentials *ret,
                               struct idem_error *ret_error);
int idem__aws_source_instance(struct idem__aws_ask *ask,
                              struct idem__aws_credentials *ret,
                              struct idem_error *ret_error);

/* ---- For sources and their tests --------------------------------------- */

/* Reads keys from a JSON object: AccessKeyId, SecretAccessKey, a token in the member
 * @token, and perhaps Expiration. @who names the source in errors. IDEM_ECONFIG: it lacks
 * keys, or is not such an object. */
int idem__aws_read_keys(struct idem_slice json, const char *token,
                        const char *who, struct idem__aws_credentials *ret,
                        struct idem_error *error);

/* Sends ask->fetch, and once more if no answer comes or the answer is a 5xx. @who names
 * the other side in errors. Leaves the request and the answer in ask->fetch. Returns 0,
 * whatever the status is, or the codes of idem__aws_fetch(). */
int idem__aws_try(struct idem__aws_ask *ask, const char *who,
                  struct idem_error *error);

/* Reads the token in the file at @path, which the setting @name names, without trailing
 * line ends. */
int idem__aws_read_token(const char *name, const char *path, char *buf,
                         size_t cap, struct idem_error *error);

/* Reads the credentials in an answer of STS, which is XML. IDEM_ECONFIG: it has no usable
 * ones. */
int idem__aws_read_role(struct idem_slice xml,
                        struct idem__aws_credentials *ret,
                        struct idem_error *error);

/* Runs @command, split into words as a shell would, with a time limit, and reads the keys
 * that it prints. */
int idem__aws_source_process(struct idem__aws_ask *ask,
                             struct idem_slice command,
                             struct idem__aws_credentials *ret,
                             struct idem_error *error);

#endif
