/* Clients: processes that are started, wait, sleep, are stopped and die. */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include "world.h"

/* Starts @client as a new process that runs @run(@client). */
void client_start(struct world *w, struct client *client, coro_fn *run);

/* It dies where it is. */
void client_crash(struct world *w, struct client *client);

bool client_ready(const struct world *w, const struct client *client);

/* Lets it run until it waits for something. */
void client_resume(struct world *w, struct client *client);

/* ---- From inside ---- */

/* Gives way until it is woken, or until true time is @until. */
void client_block(struct client *client, enum client_state state,
                  int64_t until);
void client_sleep(struct client *client, int64_t ms);

/* An operation of @client was answered. */
void client_wake(struct client *client);

#endif
