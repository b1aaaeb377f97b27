/* idem/setting.h: reads the values of settings.
 *
 * Options of commands, directives of nginx and variables of a Lambda function with the
 * same meaning take the same values, and refuse a wrong value with the same sentence,
 * which begins with the name of the setting:
 *
 *     --lease: "1s" is not a time from 2s to 36525d (500ms, 30s, 5m, 2h, 7d)
 */
#ifndef IDEM_SETTING_H
#define IDEM_SETTING_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

enum idem_setting_kind {
    IDEM_SETTING_TIME = 1, /* 500ms, 30s, 5m, 2h, 7d; a value in ms. */
    IDEM_SETTING_SIZE,     /* 512, 64k, 8M, 1G, in powers of 1024; in bytes. */
    IDEM_SETTING_COUNT,    /* Decimal digits. */
    IDEM_SETTING_WORD,     /* One of words; the value is min for the first, min
                              + 1 for the next, and so on. */
};

/* The values that a setting takes. */
struct idem_setting {
    enum idem_setting_kind kind;
    int64_t min;
    int64_t max;              /* 0: no limit. */
    bool or_never;            /* A time that may be "never", IDEM_NEVER. */
    const char *const *words; /* NULL-terminated. */
};

/* The settings that several front ends share. */
#define IDEM_SETTING(...) (&(const struct idem_setting){.kind = __VA_ARGS__})
#define IDEM_SETTING_LEASE                                                     \
    IDEM_SETTING(IDEM_SETTING_TIME, .min = IDEM_LEASE_MIN_MS)
#define IDEM_SETTING_RETENTION                                                 \
    IDEM_SETTING(IDEM_SETTING_TIME, .min = 1, .or_never = true)
#define IDEM_SETTING_POLICY /* An enum idem_on_expired_lease. */               \
    IDEM_SETTING(IDEM_SETTING_WORD, .min = IDEM_RERUN,                         \
                 .words = (const char *const[]){"rerun", "hold", NULL})
#define IDEM_SETTING_WAIT IDEM_SETTING(IDEM_SETTING_TIME)
#define IDEM_SETTING_RETRY_AFTER IDEM_SETTING(IDEM_SETTING_TIME)
#define IDEM_SETTING_STORE_TIMEOUT                                             \
    IDEM_SETTING(IDEM_SETTING_TIME, .min = 1, .max = 3600000)
#define IDEM_SETTING_MAX_FAILURES /* 0: no budget. */                          \
    IDEM_SETTING(IDEM_SETTING_COUNT, .max = UINT32_MAX)
#define IDEM_SETTING_MAX_ATTEMPTS /* 0: any number. */                         \
    IDEM_SETTING(IDEM_SETTING_COUNT, .max = UINT32_MAX)
#define IDEM_SETTING_MAX_REQUEST                                               \
    IDEM_SETTING(IDEM_SETTING_SIZE, .max = INT64_C(1) << 40)
#define IDEM_SETTING_MAX_RESULT                                                \
    IDEM_SETTING(IDEM_SETTING_SIZE, .max = IDEM_RESULT_MAX)

/* Reads @text, the value of the setting that users know as @name, into *@ret_value:
 * milliseconds, bytes, a count or the number of a word.
 *
 * IDEM_EINVALID  @text is not a value of @setting; *@ret_value is unchanged.
 */
int idem_setting_read(const struct idem_setting *setting, const char *name,
                      const char *text, int64_t *ret_value,
                      struct idem_error *ret_error);

/* Writes the time @ms to @buf in the same form: "7d", "90s", "never". From ten of a
 * unit on, it drops the fraction of that unit. */
void idem_setting_time(int64_t ms, char buf[32]);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
