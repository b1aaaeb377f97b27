/* What clients called and were answered, as a history for tests/history/check. */
#ifndef SIM_HISTORY_H
#define SIM_HISTORY_H

#include "world.h"

/* Writes the histories of all schedules from here on to the file at @path. Until
 * then all of the following do nothing. False: it cannot be written. */
bool history_open(const char *path);
void history_close(void);

/* Around a schedule. */
void history_start(void);
void history_end(struct world *w);

/* @c calls; the library submits @op for it, perhaps again. What @f does for it
 * may have been done already, and is done again; is a claim that was made, and may
 * be taken over before its owner knows; or comes twice. */
void history_call(struct client *c, const struct key *key);
void history_submit(struct client *c, const struct idem_op *op);
void history_again(const struct flight *f);
void history_made(const struct flight *f);
void history_doubled(const struct flight *f);

/* @c is told @rc; of a begin also the attempt, of a get the record. Either may be
 * NULL. */
void history_told(struct client *c, int rc, const struct idem_attempt *attempt,
                  const struct idem_record *record);

/* @c dies, perhaps in a call. */
void history_crash(struct client *c);

/* The store deletes by itself what is past its retention. */
void history_deleted(const struct world *w);

/* The store's time starts anew, and nothing is known of it any more. */
void history_reboot(void);

#endif
