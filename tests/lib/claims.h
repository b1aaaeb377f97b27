/* Claims and their answers: the test fails unless each call answers as it expects. The end
 * of the test frees the attempts and records that these calls return. */
#ifndef TEST_CLAIMS_H
#define TEST_CLAIMS_H

#include <idem/operator.h>

/* Opens a store in memory, with @options (may be NULL); the end of the test closes it. */
struct idem_store *open_memory(const struct idem_open_options *options);

/* A claim of @key in the empty scope, under IDEM_HOLD. */
struct idem_request claim(const char *key);

/* The same under IDEM_RERUN. */
struct idem_request rerun(const char *key);

/* "@stem@n"; valid for this thread's next 63 calls. */
const char *numbered(const char *stem, size_t n);

/* Calls idem_begin(), which must answer @verdict. */
struct idem_attempt *begin(struct idem_store *store,
                           const struct idem_request *request,
                           enum idem_verdict verdict);

/* Does the same, without returning the attempt. */
void expect(struct idem_store *store, const struct idem_request *request,
            enum idem_verdict verdict);

/* Begins "k@from" to "k@to" less one, each with @request, through one queue. */
void start_many(struct idem_store *store, size_t from, size_t to,
                struct idem_request request);

/* idem_attempt_from_token(). */
struct idem_attempt *by_token(struct idem_store *store, const char *token);

/* Frees @attempt, which another call gave, when the test has ended; returns it. */
struct idem_attempt *freed_later(struct idem_attempt *attempt);

/* Begins the key, and completes it with @text. */
void run(struct idem_store *store, const struct idem_request *request,
         const char *text);

int complete(struct idem_attempt *attempt, const char *text);

/* Returns the record of @key in the empty scope, which must exist. */
const struct idem_record *get(struct idem_store *store, const char *key);

#endif
