/* Reports the findings of a check to its caller, one at a time. */
#ifndef IDEM_CORE_FINDING_H
#define IDEM_CORE_FINDING_H

#include <idem/check.h>

/* The callback that receives the findings. */
struct idem__findings {
    idem_finding_fn *each;
    void *ctx;
};

/* Reports a finding. @mend may be NULL. The sentence is cut to fit. */
void idem__found(const struct idem__findings *to, enum idem_grade grade,
                 const char *about, const char *mend, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Reports a bad finding, with the code and the sentence of @error. */
void idem__found_error(const struct idem__findings *to, const char *about,
                       const char *mend, const struct idem_error *error);

/* Copies @given (NULL: the defaults) to @ret_options. IDEM_EINVALID: @given has the wrong
 * size. */
int idem__check_options(const struct idem_check_options *given,
                        struct idem_check_options *ret_options,
                        struct idem_error *error);

#endif
