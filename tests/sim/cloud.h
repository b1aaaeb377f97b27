/* Where the table of DynamoDB is: requests arrive, and its clock deletes.
 *
 * The table is that of tests/lib, which is compared with real servers. What it
 * holds under each key is also kept as a view (key->rows), for the judges. */
#ifndef SIM_CLOUD_H
#define SIM_CLOUD_H

#include "world.h"

/* Name of the table. */
extern const char cloud_table[];

void cloud_open(struct world *w);
void cloud_close(void);

/* @p, a request, arrives: its answer is in p->answer and p->status then. */
void cloud_arrive(struct world *w, struct flight *p);

/* As service.h has it: of a head, or of what of its result is stored beside it. */
bool cloud_choose_flip(struct world *w, struct key *key);
void cloud_flip(struct key *key);

#endif
