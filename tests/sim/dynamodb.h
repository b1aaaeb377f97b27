/* The store is a table of DynamoDB: each operation is a task of
 * aws/dynamodb, which sends one request after the other, and each request
 * goes its own way through the network, as bytes.
 *
 *     task --request--> flight --network--> cloud.c: the table
 *      ^                                       |
 *      '------ answer, or silence <--- flight -'
 *
 * Other than remote.c this has no opinion of its own on how an operation becomes
 * requests, what an answer means, or what time it is at the table: that is all
 * the library's. */
#ifndef SIM_DYNAMODB_H
#define SIM_DYNAMODB_H

#include "world.h"

/* A client starts or is gone, with all that it remembered. */
void dynamodb_born(struct client *c);
void dynamodb_gone(struct client *c);

/* Goes on with an operation, a request or an answer. */
void dynamodb_step(struct world *w, struct flight *f);

/* Frees what only a flight of this store has. */
void dynamodb_drop(struct flight *f);

#endif
