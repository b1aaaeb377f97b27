/* The store that the library sees: it notes what was submitted, and waits. */
#ifndef SIM_DOOR_H
#define SIM_DOOR_H

#include "world.h"

/* Opens the store of @client for the process that it is now. */
void door_open(struct client *client);

#endif
