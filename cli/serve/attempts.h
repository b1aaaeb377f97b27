/* attempts.h: the attempts of clients: their leases, and what becomes of them when the
 * client has gone.
 *
 *     answered STARTED --told--> renewed while the client is heard --end--> gone
 *            |                        |            |
 *            |                        |            '-- the client died:
 *            |                        |                hold: unknown
 *            |                        |                rerun: its lease, or now
 *            |                        '-- lost: the client is told
 *            '-- its answer never left: released
 */
#ifndef IDEM_CLI_SERVE_ATTEMPTS_H
#define IDEM_CLI_SERVE_ATTEMPTS_H

#include "serve/server.h"

/* The attempt that @call, a begin, was given at @asked_ms. It takes @attempt. NULL: no
 * memory. */
struct serve_attempt *serve_attempt_add(struct serve_call *call,
                                        struct idem_attempt *attempt,
                                        int64_t lease_ms, int64_t asked_ms);

/* Forgets an attempt that has ended, or about which no message can come any more. */
void serve_attempt_remove(struct serve *serve, struct serve_attempt *a);

struct serve_attempt *serve_attempt_find(struct serve *serve,
                                         const struct serve_conn *conn,
                                         uint64_t number);
struct serve_attempt *serve_attempt_of_nonce(struct serve *serve,
                                             const uint8_t nonce[16]);
/* The attempt that the begin with this id got. */
struct serve_attempt *serve_attempt_of_id(struct serve *serve,
                                          const struct serve_conn *conn,
                                          struct idem_slice id);

/* To be called when @a was renewed: its lease counts from @asked_ms. */
void serve_attempt_renewed(struct serve *serve, struct serve_attempt *a,
                           int64_t lease_ms, int64_t asked_ms);

/* The end of a lease that was asked for at @asked_ms, as its owner counts it. */
int64_t serve_lease_end_ms(const struct serve *serve, int64_t lease_ms,
                           int64_t asked_ms);

/* How long the owner of a lease with that end may go on. */
int64_t serve_lease_left_ms(const struct serve *serve, int64_t end_ms);

/* Notifies clients of lost attempts, and renews those that are due. */
void serve_attempts_due(struct serve *serve, int64_t now_ms);

/* ---- Ends that nobody asked for ------------------------------------------ */

/* Releases a claim of which no client was told. */
void serve_give_back(struct serve *serve, struct serve_conn *conn,
                     const struct idem_attempt *attempt);

/* Forgets @a after such a release. */
void serve_attempt_give_back(struct serve *serve, struct serve_attempt *a);

/* Call this once @conn is no longer read. Releases the attempts of which its client can no
 * longer be told. If the client is dead, its other attempts end as their begin said. */
void serve_attempts_leave(struct serve *serve, struct serve_conn *conn);

#endif
