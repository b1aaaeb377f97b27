/* Signed requests to AWS services, many at once. libcurl does HTTP, connections, names,
 * proxies and TLS. The client decides what is sent and how often, when a request is
 * given up, and what counts as an answer.
 *
 *     idem__aws_client_open(&options, &client, &error)
 *     |
 *     |   request.endpoint = &endpoint;
 *     |   request.target = "DynamoDB_20120810.PutItem";
 *     |   request.body = ...;            (no copy: keep it until it is done)
 *     |   request.deadline_ms = idem__mono_ms() + 5000;
 *     |
 *     +-- idem__aws_submit(client, &request)     any number of them
 *     +-- idem__aws_work(client)                 never blocks
 *     +-- idem__aws_reap(client)                 done requests, or NULL
 *     +-- idem__aws_wait(client, deadline_ms)    until there is work
 *     |
 *     idem__aws_client_close(client)
 *
 * The outcome of a request
 * ------------------------
 *
 *     NOT_SENT   no byte of it was handed to a connection: no name, no route,
 *                refused, no TLS, no credentials, deadline before its turn. It
 *                was certainly not applied.
 *     NO_ANSWER  it was (partly) sent and no whole, intact answer came: reset,
 *                deadline, cut or too long, wrong x-amz-crc32, framing that
 *                cannot show a cut, an encoding that was not requested. It may
 *                have been applied, and it may still be applied later.
 *     ANSWERED   status and body arrived intact. idem__aws_error_parse() and the
 *                caller find out what they mean: a 3xx, a 204, a 418 and a
 *                proxy's HTML 503 are ANSWERED, too.
 *
 * When a request is sent again
 * ----------------------------
 *
 * 1. libcurl sends the same bytes on a new connection, at most once, when a
 *    kept-alive connection turns out to be dead before the first whole line of an
 *    answer (never if the connection was new, or after the deadline). It cannot
 *    know whether the service got the first copy, so two copies of one request
 *    (same body, signature and nonce) may arrive, in either order. That is harmless
 *    for our conditional writes: the service refuses the second copy, and shows our
 *    own nonce. request.sends counts the copies. Set request.once where a copy could
 *    do harm: then the request ends as NO_ANSWER instead.
 * 2. This client signs a request anew, at most once, when the service refused it
 *    because of its time (SKEWED: the Date of that very answer tells the offset) or
 *    of expired credentials that the provider can renew. Both are refusals before
 *    any effect. If request.sends is above 1, the other copy may have been applied,
 *    so the client does not, and the refusal is the answer. The outcome of a request
 *    that was signed anew is that of the second signature.
 * 3. Nothing else. After NO_ANSWER, a throttle or a 5xx the caller decides whether
 *    to send again.
 *
 * Threads
 * -------
 *
 * The client starts no thread (libcurl starts a short-lived one to look up a host name;
 * the provider may have one of its own). The caller needs a lock around all calls,
 * except:
 *
 * - idem__aws_wait() is called without that lock, by one thread at a time; while
 *   it waits, others may submit, work and reap.
 * - idem__aws_wake() may be called from any thread at any time.
 *
 * If TLS is used or a name is looked up, the client blocks all signals of the calling
 * thread while libcurl works: libcurl's threads must not take them, and a TLS library
 * that raises SIGPIPE must not end the process. It changes nothing else of the process.
 *
 * A foreign event loop watches idem__aws_fd() for reading, sets a timer to
 * idem__aws_due_ms(), and calls work() and reap() at either.
 *
 * After fork() a client must not be touched in the child, not even closed.
 */
#ifndef IDEM_AWS_CLIENT_TRANSPORT_H
#define IDEM_AWS_CLIENT_TRANSPORT_H

#include "aws/client/clock.h"
#include "aws/client/request.h"

struct idem__aws_client;

/* Opens a client. Initializes libcurl if needed, and copies @options.
 *
 * IDEM_ECONFIG  libcurl is too old; ca_file cannot be read.
 * IDEM_ENOMEM
 */
int idem__aws_client_open(const struct idem__aws_options *options,
                          struct idem__aws_client **ret_client,
                          struct idem_error *ret_error);

/* Closes the connections. Every request must have been reaped (abort those that are not
 * done). NULL is allowed. Returns quickly even while a name is being looked up. */
void idem__aws_client_close(struct idem__aws_client *client);

/* Takes @request, which the next idem__aws_work() sends. idem__aws_reap() returns it when
 * it is done, also if it failed. */
void idem__aws_submit(struct idem__aws_client *client,
                      struct idem__aws_request *request);

/* Sends, receives and ends requests as far as it can without waiting. */
void idem__aws_work(struct idem__aws_client *client);

/* Returns the next request that is done, in the order in which they ended; NULL: none. */
struct idem__aws_request *idem__aws_reap(struct idem__aws_client *client);

/* Ends @request now: reap() returns it as NOT_SENT or NO_ANSWER. Does nothing if it is
 * done already. */
void idem__aws_abort(struct idem__aws_client *client,
                     struct idem__aws_request *request);

/* Waits until work() has something to do, idem__aws_wake() was called, or
 * CLOCK_MONOTONIC has reached @deadline_ms. May return early for no reason. */
void idem__aws_wait(struct idem__aws_client *client, int64_t deadline_ms);

/* Ends the wait in progress, or else the next one, at once. */
void idem__aws_wake(struct idem__aws_client *client);

/* Returns a descriptor that is readable when work() has something to do, or after a
 * wake. */
int idem__aws_fd(const struct idem__aws_client *client);

/* Returns the time (CLOCK_MONOTONIC) by which work() must be called even if nothing is
 * readable; IDEM_NEVER: none. */
int64_t idem__aws_due_ms(const struct idem__aws_client *client);

/* Returns the service's time as learned so far (base/learned_clock.h), for the thread that
 * works. All endpoints of the client share one clock. */
const struct idem__learned_clock *idem__aws_client_clock(
    const struct idem__aws_client *client);

/* Copy the counters and the clock as they were when the last request ended. From any
 * thread. */
void idem__aws_client_counters(struct idem__aws_client *client,
                               struct idem__aws_counters *ret_counters);
void idem__aws_client_shown_clock(struct idem__aws_client *client,
                                  struct idem__learned_clock *ret_clock);

/* Frees the answer. The request may be submitted again. */
void idem__aws_request_finish(struct idem__aws_request *request);

#endif
