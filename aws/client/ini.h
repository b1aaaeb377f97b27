/* Reading the format of AWS's shared files, line by line. Pure, no memory.
 *
 *     [profile work]                 a section
 *     region = eu-west-1             a setting
 *     s3 =                           a setting that has settings of its own
 *       max_queue_size = 100         ... nested ones
 *     long = some                    a value that goes on
 *       more of it                   ... on the next line
 *     # and ; begin a comment, also after a value if a blank precedes them */
#ifndef IDEM_AWS_CLIENT_INI_H
#define IDEM_AWS_CLIENT_INI_H

#include <idem.h>

/* A larger file is none of these. */
#define IDEM__AWS_INI_MAX ((size_t)1 << 20)

enum idem__aws_ini_kind {
    IDEM__AWS_INI_SECTION = 1, /* name */
    IDEM__AWS_INI_SETTING,     /* name, value */
    IDEM__AWS_INI_NESTED,      /* name, value; of the setting above. */
    IDEM__AWS_INI_MORE,        /* value: more of the setting above. */
};

/* The slices point into the text. Blanks around them are not theirs. */
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
    bool open; /* The setting above has no value: what follows is nested. */
    bool set;  /* There is a setting above. */
};

void idem__aws_ini_begin(struct idem__aws_ini *ini, struct idem_slice text);

/* The next line that says something: 1; 0 at the end; or IDEM_ECONFIG, and
 * *@ret_flaw says what is wrong with line ini->number: it has a control
 * character, is not a setting, or is one that belongs to no section. */
int idem__aws_ini_next(struct idem__aws_ini *ini,
                       struct idem__aws_ini_line *ret_line,
                       const char **ret_flaw);

/* Finds the last value of the setting @name in the sections whose header says
 * @kind and @section: "[profile work]" is "profile" and "work"; "[work]" is ""
 * and "work". With @outer the setting that is nested in it. Names of settings
 * are compared without regard to case, sections with. @text has been read to its
 * end without a flaw.
 *
 * Returns 1; 0: there is none, or it is empty; IDEM_ECONFIG: it goes on over
 * several lines, which none that we read does.
 */
int idem__aws_ini_find(struct idem_slice text, const char *kind,
                       struct idem_slice section, const char *outer,
                       const char *name, struct idem_slice *ret_value);

/* Whether there is such a section. */
bool idem__aws_ini_has(struct idem_slice text, const char *kind,
                       struct idem_slice section);

#endif
