/* base.h: the errors, slices and limits that all headers of idem use; <idem.h> includes
 * it. */
#ifndef IDEM_BASE_H
#define IDEM_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- Errors ------------------------------------------------------------ */

/* Code, value, kind, text. The value is part of the ABI. */
#define IDEM_ERROR_MAP(IDEM__X)                                                \
    IDEM__X(INVALID, -1, CALLER, "the request is not valid")                   \
    IDEM__X(UNAVAILABLE, -2, RETRY,                                            \
            "the store is away or busy; nothing was done")                     \
    IDEM__X(UNKNOWN, -3, RETRY,                                                \
            "it is not known whether the store made the change")               \
    IDEM__X(LOST, -4, LOST, "the attempt no longer owns the record")           \
    IDEM__X(FULL, -5, STORE, "the store has no room; nothing was done")        \
    IDEM__X(CORRUPT, -6, STORE, "the record cannot be trusted")                \
    IDEM__X(DENIED, -7, STORE, "the store may not be used by this user")       \
    IDEM__X(CONFIG, -8, STORE, "the store or its settings cannot be used")     \
    IDEM__X(NOMEM, -9, MEMORY, "out of memory")                                \
    IDEM__X(NOTFOUND, -10, CALLER, "the key has no record")

enum idem_code {
    IDEM_OK = 0,
#define IDEM__X(name, value, kind, text) IDEM_E##name = value,
    IDEM_ERROR_MAP(IDEM__X)
#undef IDEM__X
};

/* The action that a caller can take on an error. */
enum idem_kind {
    IDEM_KIND_NONE = 0,
    IDEM_KIND_RETRY,  /* Try again later; repeating the same op is safe. */
    IDEM_KIND_LOST,   /* Stop: this attempt no longer owns the key. */
    IDEM_KIND_CALLER, /* Correct the request. */
    IDEM_KIND_STORE,  /* Repair the store. */
    IDEM_KIND_MEMORY,
};

struct idem_error {
    int code;       /* 0 or an enum idem_code. */
    char text[252]; /* One sentence, NUL-terminated, for a person. */
};

/* Returns the name of @code: "INVALID", "LOST" ...; "OK" for 0; never NULL. */
const char *idem_error_name(int code);

/* Returns the general sentence for @code; never NULL. */
const char *idem_error_text(int code);

/* Returns the kind of @code; IDEM_KIND_NONE if @code is not an enum idem_code below
 * 0. */
enum idem_kind idem_error_kind(int code);

/* ---- Slices ------------------------------------------------------------ */

struct idem_slice {
    const void *base; /* May be NULL when len is 0. */
    size_t len;
};

/* Returns the slice of the @len bytes at @base, which must stay valid as long as the
 * slice is used. */
static inline struct idem_slice idem_bytes(const void *base, size_t len)
{
    struct idem_slice s;
    s.base = base;
    s.len = len;
    return s;
}

/* Returns the slice of @text without its NUL; NULL gives an empty slice. @text must
 * stay valid as long as the slice is used. */
static inline struct idem_slice idem_str(const char *text)
{
    return idem_bytes(text, text == NULL ? 0 : strlen(text));
}

/* ---- Limits ------------------------------------------------------------ */

#define IDEM_KEY_MAX 255            /* Bytes of a key; the shortest is 1. */
#define IDEM_SCOPE_MAX 255          /* Bytes of a scope; it may be empty. */
#define IDEM_OWNER_MAX 255          /* Bytes of an owner. */
#define IDEM_TRACEPARENT_LEN 55     /* Bytes of a traceparent. */
#define IDEM_TEXT_MAX 4096          /* Bytes of an error, note or reason. */
#define IDEM_META_MAX 32768         /* Bytes of a result's metadata. */
#define IDEM_RESULT_MAX (64L << 20) /* Bytes of a result or an input. */
#define IDEM_ID_LEN 32              /* Bytes of an identity. */
#define IDEM_FINGERPRINT_LEN 33     /* Bytes of a fingerprint. */
#define IDEM_SECRET_MAX 65536       /* Bytes of a fingerprint's secret. */
#define IDEM_HISTORY_MAX 8          /* Past attempts that a record keeps ... */
#define IDEM_PAST_META_MAX 64       /* ... and bytes of what a decision of a */
#define IDEM_PAST_TEXT_MAX 1024     /* person replaced: metadata, and text. */
#define IDEM_TOKEN_MAX 768          /* Bytes of a token, with its NUL. */
#define IDEM_LEASE_MIN_MS 2000      /* The shortest lease of any store. */
#define IDEM_DURATION_MAX_MS 3155760000000LL /* A hundred years. */
#define IDEM_NEVER INT64_MAX    /* A lease or retention without an end. */
#define IDEM_STORE_URL_MAX 1536 /* Bytes of idem_store_url(). */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
