/* Clients that do operations at a DynamoDB table; main() is in dynamodb.c. */
#ifndef DYNAMODB_H
#define DYNAMODB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    IN_FLIGHT_MAX = 32,
    NAME_MAX_LEN = 32
};

/* Operations to do. Whatever goes wrong ends the program with a sentence. */
struct work {
    bool fresh; /* Claim and complete; else: get what is recorded. */
    unsigned in_flight;
    uint64_t from; /* Keys are numbered. */
    uint64_t keys; /* So many of them, in turn. */
    uint64_t ops;
};

struct client {
    const char *name;
    void (*open)(const char *where, const char *result);
    void (*run)(const struct work *work);
    void (*close)(void);
};

/* The key with number @n. */
void name_of(uint64_t n, char ret_name[NAME_MAX_LEN]);

/* By idem: one caller waits for each answer; more are ops in one queue, on one
 * thread. @where is a URL of a store. */
extern const struct client client_idem;

/* By idem, with a thread for each caller. */
extern const struct client client_idem_threads;

/* By libcurl alone, the least that can be sent. @where is URL/TABLE. */
extern const struct client client_raw;

#endif
