/* Signed requests to AWS services, many at once. libcurl speaks HTTP, keeps the
 * connections, and knows names, proxies and TLS; here is what may be sent and how
 * often, when a request has to be given up, and what counts as an answer.
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
 * A request that is done: its facts
 * ------------------------------------------
 *
 *     NOT_SENT   no byte of it was handed to a connection: no name, no route,
 *                refused, no TLS, no credentials, deadline before its turn. It
 *                was certainly not applied.
 *     NO_ANSWER  it was (partly) sent and no whole, intact answer came: reset,
 *                deadline, cut or too long, wrong x-amz-crc32, framing that
 *                cannot show a cut, an encoding that was not asked for. It may
 *                have been applied, it may still be applied later.
 *     ANSWERED   status and body arrived intact. Their meaning is left to
 *                idem__aws_error_parse() and the caller: a 3xx, a 204, a 418
 *                and a proxy's HTML 503 are ANSWERED too.
 *
 * Requests that are sent again, and by which floor
 * -------------------------------
 *
 * 1. The same bytes, on a new connection, at most once: when a kept-alive
 *    connection turns out to be dead before the first whole line of an answer
 *    (never when the connection was new, nor after a deadline). Nobody can know
 *    whether the service got the first copy, so two copies of one request (same
 *    body, same signature; same nonce and rev) may arrive, in either order. For
 *    our conditional writes that is harmless: the copy that comes second is
 *    refused and shows our own nonce. request.sends counts the copies. With
 *    request.once set there is never a second one: the request ends as NO_ANSWER
 *    instead. Set it where a copy could do harm.
 * 2. This client, signed anew, at most once per request: when the service
 *    refused it because of its time (SKEWED: the Date of that very answer tells
 *    the offset) or of expired credentials that the provider can renew. Both
 *    are refusals before any effect; with request.sends above 1 there may have
 *    been another copy, so then it is not done and the refusal is the answer.
 *    The result of the request is then about the second signature.
 * 3. Nothing else. Whether to send again after NO_ANSWER, a throttle or a 5xx
 *    is the caller's decision: the transport never does.
 *
 * Threads
 * -------
 *
 * The client starts no thread (libcurl starts a short-lived one to look up a
 * host name; the provider may have one of its own). All calls must be kept apart
 * by a lock of the caller's, except:
 *
 * - idem__aws_wait() is called without that lock, by one thread at a time; while
 *   it waits, others may submit, work and reap.
 * - idem__aws_wake() may be called from any thread at any time.
 *
 * Where TLS is used or a name is looked up, all signals of the calling thread are
 * blocked while libcurl works: its threads must not take them, and a TLS library
 * that raises SIGPIPE must not end the process. Nothing else of the process is
 * changed.
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

/* Makes libcurl ready, if that was not done before. @options is copied.
 *
 * IDEM_ECONFIG  libcurl is too old; ca_file cannot be read.
 * IDEM_ENOMEM
 */
int idem__aws_client_open(const struct idem__aws_options *options,
                          struct idem__aws_client **ret_client,
                          struct idem_error *ret_error);

/* Closes the connections. Every request has been reaped (abort those that are not
 * done). NULL is allowed. Takes no time to speak of, even while a name is being
 * looked up. */
void idem__aws_client_close(struct idem__aws_client *client);

/* Takes @request, which the next idem__aws_work() sends. It is done when
 * idem__aws_reap() gives it back; it cannot fail in another way. */
void idem__aws_submit(struct idem__aws_client *client,
                      struct idem__aws_request *request);

/* Sends, receives and ends what can be without waiting. */
void idem__aws_work(struct idem__aws_client *client);

/* The next request that is done, in the order in which they ended; NULL: none. */
struct idem__aws_request *idem__aws_reap(struct idem__aws_client *client);

/* Ends @request now: it is reaped next, as NOT_SENT or NO_ANSWER. If it is done
 * already, nothing changes. */
void idem__aws_abort(struct idem__aws_client *client,
                     struct idem__aws_request *request);

/* Waits until work() has something to do, idem__aws_wake() was called, or
 * CLOCK_MONOTONIC has reached @deadline_ms. May return early for no reason. */
void idem__aws_wait(struct idem__aws_client *client, int64_t deadline_ms);

/* Ends a wait that is under way, or else the next one, at once. */
void idem__aws_wake(struct idem__aws_client *client);

/* Readable when work() has something to do (or was woken). */
int idem__aws_fd(const struct idem__aws_client *client);

/* CLOCK_MONOTONIC of the time by which work() must be called even if nothing is
 * readable; IDEM_NEVER: none. */
int64_t idem__aws_due_ms(const struct idem__aws_client *client);

/* The service's time as learned so far, for the thread that works; base/learned_clock.h. One
 * clock for all endpoints of the client. */
const struct idem__learned_clock *idem__aws_client_clock(
    const struct idem__aws_client *client);

/* The counters up to the last request that ended, and the clock of that moment. From any
 * thread. */
void idem__aws_client_counters(struct idem__aws_client *client,
                               struct idem__aws_counters *ret_counters);
void idem__aws_client_shown_clock(struct idem__aws_client *client,
                                  struct idem__learned_clock *ret_clock);

/* Frees the answer. The request may be submitted again. */
void idem__aws_request_finish(struct idem__aws_request *request);

#endif
