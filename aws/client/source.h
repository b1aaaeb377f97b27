/* Where credentials come from. Each source is asked on a thread that may wait.
 *
 *     profile     the shared files, and what a profile names there: keys, a
 *                 program, a role for a web identity
 *     web         a role, for the token that AWS_WEB_IDENTITY_TOKEN_FILE has
 *     container   the endpoint of a container's credentials
 *     instance    the metadata service of an instance, version 2
 *
 * A source that is set up and fails is an error: credentials of somebody else are
 * not used in its place.
 */
#ifndef IDEM_AWS_CLIENT_SOURCE_H
#define IDEM_AWS_CLIENT_SOURCE_H

#include "aws/client/credentials.h"
#include "aws/client/fetch.h"
#include "aws/client/settings.h"

struct idem__aws_ask {
    const struct idem__aws_env *env;
    const char *region; /* For STS where nothing else names one; "": none. */
    int stop;           /* A descriptor: give up when it is readable. */
    struct idem__aws_fetch fetch; /* Room for one request. */
};

/* Each gives credentials that are to be wiped, and returns
 *
 * 0
 * 1                  It is not set up.
 * IDEM_ECONFIG       It is set up in a way that cannot be, or says that there are
 *                    none; the sentence says what to do.
 * IDEM_EUNAVAILABLE  It did not answer; later it may.
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

/* The region in which this instance is, to @buf. Waits for it, some seconds at
 * most; the calling thread's signals are blocked meanwhile. Returns as above. */
int idem__aws_instance_region(const struct idem__aws_env *env, char *buf,
                              size_t cap, struct idem_error *ret_error);

/* ---- For sources and their tests --------------------------------------- */

/* Keys as a JSON object has them: AccessKeyId, SecretAccessKey, a token by the
 * name of @token, perhaps Expiration. @who names the source in errors:
 * IDEM_ECONFIG: it lacks keys, or is not such an object. */
int idem__aws_read_keys(struct idem_slice json, const char *token,
                        const char *who, struct idem__aws_credentials *ret,
                        struct idem_error *error);

/* Sends ask->fetch, and once more if that is in vain or the answer is a 5xx. @who
 * names the other side in errors. Then what was asked stays in ask->fetch, with
 * the answer. 0, whatever the status; else the codes of idem__aws_fetch(). */
int idem__aws_try(struct idem__aws_ask *ask, const char *who,
                  struct idem_error *error);

/* Reads the token in the file at @path, which @name set, without trailing line
 * ends. */
int idem__aws_read_token(const char *name, const char *path, char *buf,
                         size_t cap, struct idem_error *error);

/* A role of STS to be taken on. */
struct idem__aws_role {
    const char *arn;
    const char *session;  /* "": a name of ours. */
    const char *duration; /* In seconds; "" or NULL: an hour. */
    const char *token;    /* Of the web identity that asks for it. */
};

/* Takes it on at the STS of the user's region, or of ask->region. @profiles may be
 * NULL. */
int idem__aws_assume(struct idem__aws_ask *ask,
                     const struct idem__aws_profiles *profiles,
                     const struct idem__aws_role *role,
                     struct idem__aws_credentials *ret,
                     struct idem_error *error);

/* The credentials in an answer of STS, which is XML. IDEM_ECONFIG: there are none
 * that can be used. */
int idem__aws_read_role(struct idem_slice xml,
                        struct idem__aws_credentials *ret,
                        struct idem_error *error);

/* Runs @command, its words parted as a shell does, with a time limit, and reads
 * the keys that it prints. */
int idem__aws_source_process(struct idem__aws_ask *ask, const char *command,
                             struct idem__aws_credentials *ret,
                             struct idem_error *error);

#endif
