/* Claims, and what they meet: each call answers as the test says, or the test fails.
 * The attempts and records that they give are freed when the test has ended. */
#ifndef TEST_CLAIMS_H
#define TEST_CLAIMS_H

#include <idem/operator.h>

/* A store in memory, with @options (may be NULL), that is closed when the test has
 * ended. */
struct idem_store *open_memory(const struct idem_open_options *options);

/* A claim of @key in the empty scope, under IDEM_HOLD. */
struct idem_request claim(const char *key);

/* The same under IDEM_RERUN. */
struct idem_request rerun(const char *key);

/* "@stem@n"; valid for this thread's next 63 calls. */
const char *numbered(const char *stem, size_t n);

/* idem_begin(), which must answer @verdict. */
struct idem_attempt *begin(struct idem_store *store,
                           const struct idem_request *request,
                           enum idem_verdict verdict);

/* The same, without the attempt. */
void expect(struct idem_store *store, const struct idem_request *request,
            enum idem_verdict verdict);

/* Starts "k@from" to "k@to" less one, each as @request says, in one queue. */
void start_many(struct idem_store *store, size_t from, size_t to,
                struct idem_request request);

/* idem_attempt_from_token(). */
struct idem_attempt *by_token(struct idem_store *store, const char *token);

/* Frees @attempt, which another call gave, when the test has ended; returns it. */
struct idem_attempt *freed_later(struct idem_attempt *attempt);

/* Starts and completes with @text. */
void run(struct idem_store *store, const struct idem_request *request,
         const char *text);

int complete(struct idem_attempt *attempt, const char *text);

/* The record of @key in the empty scope, which must be there. */
const struct idem_record *get(struct idem_store *store, const char *key);

#endif
