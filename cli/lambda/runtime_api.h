/* runtime_api.h: Lambda's Runtime API (2018-06-01) on this host, for one event. */
#ifndef IDEM_CLI_LAMBDA_RUNTIME_API_H
#define IDEM_CLI_LAMBDA_RUNTIME_API_H

#include <idem.h>

/* The event for the first that asks for the next one. */
struct lambda_event {
    const char *request_id;
    const char *arn; /* NULL: not said. */
    int64_t time_ms; /* From then until the deadline. */
    struct idem_slice json;
};

enum lambda_end {
    LAMBDA_OPEN = 0,
    LAMBDA_RESPONSE,
    LAMBDA_ERROR,      /* body: {"errorType", "errorMessage"}. */
    LAMBDA_INIT_ERROR, /* Likewise: it cannot be set up. */
};

struct lambda_answer {
    enum lambda_end end;
    int64_t deadline_ms; /* 0: nobody has asked for the event yet. */
    bool asked_again;    /* After its answer: all of that is over. */
    struct idem_slice
        body; /* With a NUL after it unless it is empty; valid until
                               the API is stopped. */
};

struct lambda_api;

/* Serves on a port of this host, on threads of its own; @event and what it points to
 * must stay. 0, or an exit status after saying why. */
int lambda_api_start(const struct lambda_event *event,
                     struct lambda_api **ret_api, unsigned *ret_port);

/* Readable when there may be something new to look at. */
int lambda_api_fd(const struct lambda_api *api);

/* How far it has come; what made the descriptor readable is taken. */
void lambda_api_look(struct lambda_api *api, struct lambda_answer *ret_answer);

void lambda_api_stop(struct lambda_api *api);

#endif
