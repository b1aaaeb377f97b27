/* libjq, loaded when it is first needed: who selects nothing does not pay for it. */
#ifndef IDEM_KEY_LIBJQ_H
#define IDEM_KEY_LIBJQ_H

#include <idem.h>

#include <jq.h>

/* <jv.h> brings a function that calls this one. Nobody calls it; but without
 * optimization it stays, and libjq is not linked. */
jv_kind jv_get_kind(jv) __attribute__((weak));

/* The functions that we use, with the types of <jq.h>. */
#define IDEM__JQ_MAP(IDEM__X)                                                  \
    IDEM__X(jq_state *, jq_init, (void))                                       \
    IDEM__X(void, jq_set_attr, (jq_state *, jv, jv))                           \
    IDEM__X(void, jq_set_error_cb, (jq_state *, jq_msg_cb, void *))            \
    IDEM__X(void, jq_set_debug_cb, (jq_state *, jq_msg_cb, void *))            \
    IDEM__X(void, jq_set_input_cb, (jq_state *, jq_input_cb, void *))          \
    IDEM__X(int, jq_compile, (jq_state *, const char *))                       \
    IDEM__X(void, jq_start, (jq_state *, jv, int))                             \
    IDEM__X(jv, jq_next, (jq_state *))                                         \
    IDEM__X(int, jq_halted, (jq_state *))                                      \
    IDEM__X(jv, jq_format_error, (jv))                                         \
    IDEM__X(void, jq_teardown, (jq_state **))                                  \
    IDEM__X(jv, jv_array, (void))                                              \
    IDEM__X(jv, jv_copy, (jv))                                                 \
    IDEM__X(jv, jv_dump_string, (jv, int))                                     \
    IDEM__X(void, jv_free, (jv))                                               \
    IDEM__X(jv_kind, jv_get_kind, (jv))                                        \
    IDEM__X(int, jv_invalid_has_msg, (jv))                                     \
    IDEM__X(jv, jv_invalid_get_msg, (jv))                                      \
    IDEM__X(jv, jv_parse_sized, (const char *, int))                           \
    IDEM__X(jv, jv_string, (const char *))                                     \
    IDEM__X(int, jv_string_length_bytes, (jv))                                 \
    IDEM__X(const char *, jv_string_value, (jv))

struct idem__libjq {
#define IDEM__X(type, name, arguments) type(*name) arguments;
    IDEM__JQ_MAP(IDEM__X)
#undef IDEM__X
};

/* The functions of libjq, which the first call in this process loads; all others
 * return the same.
 *
 * IDEM_ECONFIG  It is not installed, or lacks a function.
 */
int idem__libjq_get(const struct idem__libjq **ret_jq,
                    struct idem_error *ret_error);

#endif
