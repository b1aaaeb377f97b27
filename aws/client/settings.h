/* The user's settings for AWS: the AWS_* variables that every AWS user expects to count,
 * and the shared files. */
#ifndef IDEM_AWS_CLIENT_SETTINGS_H
#define IDEM_AWS_CLIENT_SETTINGS_H

#include <idem.h>

/* The source of variables; tests and embedding programs can bring their own. */
struct idem__aws_env {
    void *ctx;
    const char *(*get)(void *ctx, const char *name); /* NULL: not set. */
};

/* The environment of this process. */
extern const struct idem__aws_env idem__aws_env_process;

/* Returns the value of the first of @names (ends with NULL) that is set and not empty,
 * else NULL. */
const char *idem__aws_env_first(const struct idem__aws_env *env,
                                const char *const *names);

/* A copy of the variables that the sources of credentials read, for the thread on which
 * they are asked: the process may change its environment at any time, and getenv() is
 * not safe while it does. */
struct idem__aws_env_copy;

/* IDEM_ENOMEM. */
int idem__aws_env_copy(const struct idem__aws_env *env,
                       struct idem__aws_env_copy **ret_copy);

/* Wipes and frees; NULL is allowed. */
void idem__aws_env_copy_free(struct idem__aws_env_copy *copy);

/* Returns a reader of @copy, valid as long as that is. */
struct idem__aws_env idem__aws_env_of(const struct idem__aws_env_copy *copy);

/* Returns the value of @name, or NULL if it is not set or is empty. */
const char *idem__aws_env_value(const struct idem__aws_env *env,
                                const char *name);

/* True if the value of @name is "true", in any case. */
bool idem__aws_env_is_true(const struct idem__aws_env *env, const char *name);

/* ---- Shared files: profile.c ---- */

/* The shared files of AWS, ~/.aws/config and ~/.aws/credentials, and the profile in
 * use. */

#define IDEM__AWS_PROFILE_MAX 128
#define IDEM__AWS_FILE_PATH_MAX 512

struct idem__aws_file {
    char path[IDEM__AWS_FILE_PATH_MAX]; /* "": unknown, for want of HOME, or
                                           too long. */
    char *text;                         /* NULL: no such file. */
    size_t len;
};

/* Both files as they were when they were read. Zeroed: no files. */
struct idem__aws_profiles {
    char name[IDEM__AWS_PROFILE_MAX + 1]; /* AWS_PROFILE, or "default". */
    bool named;                           /* A variable names the profile. */
    struct idem__aws_file credentials;
    struct idem__aws_file config;
};

/* Reads both files: AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE, or those in
 * ~/.aws. Ignores a file that does not exist or that we may not read.
 *
 * IDEM_ECONFIG  A file has an invalid line, is longer than a megabyte, or cannot be
 *               read for another reason; or AWS_PROFILE is too long, or names a
 *               profile that is in neither file.
 * IDEM_ENOMEM
 */
int idem__aws_profiles_load(const struct idem__aws_env *env,
                            struct idem__aws_profiles *ret_profiles,
                            struct idem_error *ret_error);

/* Wipes and frees. A zeroed one is allowed. */
void idem__aws_profiles_finish(struct idem__aws_profiles *profiles);

/* Finds the setting @name of the profile, in the credentials file or else in the config
 * file. The slice points into @profiles.
 *
 * Returns 1; 0: there is none; IDEM_ECONFIG: it spans several lines.
 */
int idem__aws_profiles_get(const struct idem__aws_profiles *profiles,
                           const char *name, struct idem_slice *ret_value,
                           struct idem_error *ret_error);

/* Does the same with only one of the two files, @file. */
int idem__aws_profiles_get_from(const struct idem__aws_profiles *profiles,
                                const struct idem__aws_file *file,
                                const char *name, struct idem_slice *ret_value,
                                struct idem_error *ret_error);

/* Finds the endpoint_url of @service ("dynamodb") in the services section that the profile
 * names, or else the profile's own. Returns as above. */
int idem__aws_profiles_url(const struct idem__aws_profiles *profiles,
                           const char *service, struct idem_slice *ret_url,
                           struct idem_error *ret_error);

/* Reads the whole file at @path into new memory, with a NUL after it. The caller wipes
 * and frees that.
 *
 * IDEM_ECONFIG  It cannot be opened or read (errno has the reason: EISDIR for a
 *               directory, ESPIPE for a pipe), or is longer than @max (EFBIG).
 * IDEM_ENOMEM
 */
int idem__aws_file_read(const char *path, size_t max, char **ret_text,
                        size_t *ret_len);

/* Returns errno as text, after IDEM_ECONFIG of idem__aws_file_read(). */
const char *idem__aws_file_why(void);

/* ---- Their lines: ini.c ---- */

/* Reads the format of AWS's shared files, line by line. Pure, and allocates nothing.
 *
 *     [profile work]                 a section
 *     region = eu-west-1             a setting
 *     s3 =                           a setting that has settings of its own
 *       max_queue_size = 100         ... nested ones
 *     long = some                    a value that goes on
 *       more of it                   ... on the next line
 *     # and ; begin a comment, also after a value if a blank precedes them */

/* A larger file is refused. */
#define IDEM__AWS_INI_MAX ((size_t)1 << 20)

enum idem__aws_ini_kind {
    IDEM__AWS_INI_SECTION = 1, /* name */
    IDEM__AWS_INI_SETTING,     /* name, value */
    IDEM__AWS_INI_NESTED,      /* name, value; of the setting above. */
    IDEM__AWS_INI_MORE,        /* value: more of the setting above. */
};

/* The slices point into the text, without the blanks around them. */
struct idem__aws_ini_line {
    enum idem__aws_ini_kind kind;
    struct idem_slice name;
    struct idem_slice value;
};

struct idem__aws_ini {
    struct idem_slice text;
    size_t at;
    unsigned number; /* Of the line that was read last, from 1. */
    bool in_section;
    bool open; /* The setting above has no value: nested ones may follow. */
    bool set;  /* There is a setting above. */
};

void idem__aws_ini_begin(struct idem__aws_ini *ini, struct idem_slice text);

/* Reads the next line that is not empty or a comment. Returns 1; 0 at the end; or
 * IDEM_ECONFIG with *@ret_flaw, the fault of line ini->number: it has a control character,
 * is not a setting, or is a setting outside any section. */
int idem__aws_ini_next(struct idem__aws_ini *ini,
                       struct idem__aws_ini_line *ret_line,
                       const char **ret_flaw);

/* Finds the last value of the setting @name in the sections with the header @kind and
 * @section: "[profile work]" is "profile" and "work"; "[work]" is "" and "work". With
 * @outer, finds the setting that is nested in that one. Case counts for sections, but not
 * for settings. @text has been read to its end without a fault.
 *
 * Returns 1; 0: there is none, or it is empty; IDEM_ECONFIG: it spans several lines,
 * which no setting that we read may do.
 */
int idem__aws_ini_find(struct idem_slice text, const char *kind,
                       struct idem_slice section, const char *outer,
                       const char *name, struct idem_slice *ret_value);

/* True if @text has such a section. */
bool idem__aws_ini_has(struct idem_slice text, const char *kind,
                       struct idem_slice section);

#endif
