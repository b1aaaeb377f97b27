/* The shared files of AWS, ~/.aws/config and ~/.aws/credentials, and the profile
 * that is in use. */
#ifndef IDEM_AWS_CLIENT_PROFILE_H
#define IDEM_AWS_CLIENT_PROFILE_H

#include "aws/client/env.h"

#define IDEM__AWS_PROFILE_MAX 128
#define IDEM__AWS_FILE_PATH_MAX 512

struct idem__aws_file {
    char path[IDEM__AWS_FILE_PATH_MAX]; /* "": the home directory is not
                                           known. */
    char *text;                         /* NULL: there is none. */
    size_t len;
};

/* Both files as they were when they were read. Zeroed: there are none. */
struct idem__aws_profiles {
    char name[IDEM__AWS_PROFILE_MAX + 1]; /* AWS_PROFILE, or "default". */
    bool named;                           /* By a variable. */
    struct idem__aws_file credentials;
    struct idem__aws_file config;
};

/* Reads both files: AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE, or those in
 * ~/.aws. One that is not there, or that we may not read, says nothing.
 *
 * IDEM_ECONFIG  A file has an invalid line, is longer than a megabyte, or is
 *               not a regular file; or AWS_PROFILE is not a valid name, or
 *               names a profile that is in neither file.
 * IDEM_ENOMEM
 */
int idem__aws_profiles_load(const struct idem__aws_env *env,
                            struct idem__aws_profiles *ret_profiles,
                            struct idem_error *ret_error);

/* Wipes and frees. A zeroed one is allowed. */
void idem__aws_profiles_finish(struct idem__aws_profiles *profiles);

/* True if one of the files has the profile. */
bool idem__aws_profiles_has(const struct idem__aws_profiles *profiles,
                            const char *profile);

/* The setting @name of @profile, from the credentials file if it has it, else
 * from the config file. The slice points into @profiles.
 *
 * Returns 1; 0: there is none; IDEM_ECONFIG: it goes on over several lines.
 */
int idem__aws_profiles_get(const struct idem__aws_profiles *profiles,
                           const char *profile, const char *name,
                           struct idem_slice *ret_value,
                           struct idem_error *ret_error);

/* Likewise from @file alone, which is one of the two. */
int idem__aws_profiles_get_from(const struct idem__aws_profiles *profiles,
                                const struct idem__aws_file *file,
                                const char *profile, const char *name,
                                struct idem_slice *ret_value,
                                struct idem_error *ret_error);

/* The endpoint_url of @service ("dynamodb") in the services section that
 * @profile names, else the profile's own. Returns as above. */
int idem__aws_profiles_url(const struct idem__aws_profiles *profiles,
                           const char *profile, const char *service,
                           struct idem_slice *ret_url,
                           struct idem_error *ret_error);

/* Reads the whole file at @path to new memory, with a NUL after it, which the
 * caller wipes and frees.
 *
 * IDEM_ECONFIG  It cannot be opened or read, or is not a regular file (errno
 *               says why), or is longer than @max (EFBIG).
 * IDEM_ENOMEM
 */
int idem__aws_file_read(const char *path, size_t max, char **ret_text,
                        size_t *ret_len);

#endif
