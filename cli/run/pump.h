/* pump.h: carries one stream of the command to ours, and to the recording.
 *
 * A pump either waits for the command (nothing is held) or for its sink (bytes
 * are held): while a sink is blocked nothing more is read, and the pipe slows
 * the command down. The sink is a descriptor that we share with others, so it
 * is never made non-blocking; it gets pieces that a ready sink takes at once.
 */
#ifndef IDEM_CLI_RUN_PUMP_H
#define IDEM_CLI_RUN_PUMP_H

#include "run/frames.h"

#include <poll.h>

struct pump {
    enum frame_stream stream;
    int from;       /* The command's end; -1 once it is over. */
    int to;         /* Our stream; -1 once it cannot be written to. */
    int sink_error; /* errno of what happened to it; 0: nothing. */
    char *buf;
    size_t size;
    size_t off; /* Where the held bytes start ... */
    size_t len; /* ... and how many there are. */
    struct recorder *recorder;
};

/* A pump without a command's end is done. 0, or -1: out of memory. */
int pump_init(struct pump *pump, enum frame_stream stream, int to,
              struct recorder *recorder);

/* @from, which is non-blocking, is the pump's from here on. */
void pump_connect(struct pump *pump, int from);

/* The descriptor that it waits for; a descriptor of -1 if for nothing more. */
struct pollfd pump_poll(const struct pump *pump);

/* Does what poll() said can be done. */
void pump_move(struct pump *pump, const struct pollfd *ready);

/* True once the command's end is over and nothing is held. */
bool pump_is_done(const struct pump *pump);

/* The command has ended: reads and records what it left in the pipe, without
 * waiting for the sink. */
void pump_drain(struct pump *pump);

/* Writes what the sink takes at once. True: nothing is held any more. */
bool pump_try(struct pump *pump);

/* Writes what is held, however long the sink takes. */
void pump_flush(struct pump *pump);

void pump_finish(struct pump *pump);

#endif
