/* What a client is told, held against what really happened. */
#ifndef SIM_TOLD_H
#define SIM_TOLD_H

#include "world.h"

/* @client is about to call the library about @key (NULL: about none). */
void call_enter(struct client *client, struct key *key, int verb);

/* An op of @call came back, or was given up. */
void call_op_over(const struct world *w, struct call *call, bool unsure);

/* What the call was answered. */
void told_begin(struct client *c, const struct idem_request *request, int rc,
                const struct idem_attempt *attempt);
void told_end(struct client *c, const struct held *held,
              const struct idem_outcome *outcome, int rc);
void told_renewed(struct client *c, const struct held *held, int64_t counted_ms,
                  int rc);
void told_expired(struct client *c, const struct held *held, int rc);
void told_record(struct client *c, int rc, const struct idem_record *record);
void told_code(struct client *c, int rc);
void told_resolved(struct client *c, int rc);

/* It was STARTED: @held is what it holds now. */
void told_owner(struct client *c, const struct held *held);

/* Until when the owner itself counts on its lease: its boot clock. */
int64_t counted(const struct held *held);

/* ---- Among these files ---- */

/* Somebody knows that there is as much as @now on record for @key. */
void told_see(struct key *key, const struct sight *now);

/* Any answer, to a call that was to wait @wait_ms at most. */
void told_after(struct client *c, int rc, int64_t wait_ms);

/* A record that was shown, and the result in it. */
void told_shown(struct client *c, const struct idem_record *r);
void told_result(struct client *c, const struct idem_record *r);

#endif
