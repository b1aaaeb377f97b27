/* server.h: the state of the server: connections, calls, and attempts.
 *
 *     line -> message -> call -> op -> queue -> answer     calls.h
 *                          '-> parked, submitted again ----'
 *
 * The server has one thread. A turn of its loop (loop.c) reads the requests, hands all
 * ops over, and writes the answers. Requests that came together share a flush to the
 * disk, whichever client sent them. The server never waits for one client while another
 * has something to do. It does wait for the store in the verbs of operators, in lists
 * and counters, and in a begin of whose key an outcome waits in the journal.
 *
 * All times are of serve_now_ms(): the boot clock, which nobody sets and which goes on
 * while the machine, or this process, is frozen. Tests move the time of a store in memory
 * (advance.c), and that of the server with it.
 */
#ifndef IDEM_CLI_SERVE_SERVER_H
#define IDEM_CLI_SERVE_SERVER_H

#include "base/pace.h"
#include "process/host.h"
#include "serve/line_reader.h"
#include "serve/message.h"
#include "store/journal.h"
#include "text/json.h"

#include "contract/store.h"

#include <idem/queue.h>
#include <sys/types.h>

enum {
    SERVE_IN_FLIGHT_MAX = 4096, /* On a connection; then it is not read. */
    SERVE_WAITING_MAX = SERVE_IN_FLIGHT_MAX / 2, /* More would keep ends out. */
    SERVE_UNSENT_MAX = 1 << 20,  /* Bytes; above that it is not read either. */
    SERVE_RESULT_MAX = 16 << 20, /* Bytes of a result that fit into a line. */
    SERVE_MAX_TIME_MS = 15 * 60000, /* Of renewals, unless begin has another. */
    SERVE_SETTLE_MS = 10000,        /* To learn whether an op was applied. */
    SERVE_BUCKETS = 1024,
    SERVE_PROTOCOL = 1,
};

struct serve_conn;
struct serve_call;
struct serve_attempt;

struct serve {
    struct idem_store *store;
    struct idem_queue *queue;
    bool is_operator;
    bool is_socket; /* Else one client, over standard input and output. */
    struct serve_conn *conns;
    struct {
        struct serve_call *first;
        struct serve_call *last;
    } calls; /* All of them. */
    struct serve_call *parked;
    struct idem__buffer batch; /* Ops for the end of the turn: pointers. */
    struct {
        struct serve_attempt *first;
        struct serve_attempt *last;
    } attempts; /* All of them. */
    struct serve_attempt *numbered[SERVE_BUCKETS];
    uint64_t number;   /* Of the last attempt. */
    int64_t accept_ms; /* No connection is accepted before. */
    int64_t due_ms;    /* Nothing of attempts or parked calls is due before. */
    int64_t ahead_ms;  /* Of the boot clock, by "advance". */
    struct cli_journal_view journal;
    struct idem__tree tree;  /* Of the message that is read. */
    struct idem__tree other; /* Of a result that is sent. */
    struct cli_json line;    /* To a client; see serve_answer(). */
};

static inline int64_t serve_now_ms(const struct serve *serve)
{
    return io_now_ms() + serve->ahead_ms;
}

/* For the hook clock of the store: @ctx is the server. */
int serve_clock(void *ctx, struct idem_clock_reading *ret_reading);

/* Something is due at @due_ms. */
static inline void serve_due(struct serve *serve, int64_t due_ms)
{
    serve->due_ms = due_ms < serve->due_ms ? due_ms : serve->due_ms;
}

/* A client.
 *
 *     in, out     until    end of file, or an error
 *     attempts    until    they end, the client is dead, or the last lease is over
 *     calls       until    their answers came back
 *
 * It is freed when it has none of these. */
struct serve_conn {
    struct serve_conn *next;
    int in;
    int out; /* -1: closed. One descriptor, where it is a socket. */
    struct serve_lines lines;
    struct idem__buffer unsent;
    size_t unsent_from;
    uint64_t sent; /* Bytes, of all answers so far. */
    size_t in_flight;
    size_t waiting; /* Of these: begins, for attempts of others. */
    size_t attempts;
    int64_t heard_ms; /* The last line: the heartbeat. */
    bool greeted;
    bool bye;
    bool broken; /* Memory ran out for an answer: it is closed. */
    bool dead;   /* The process has ended, which is known and not guessed. */
    pid_t peer;  /* The process at the other end; 0: not known. */
    int death;   /* Readable when that has ended; -1: its leases decide. */
    bool proved; /* The peer was there after the descriptor was opened. */
    char challenge[33];
    char owner[IDEM_OWNER_MAX + 1];
};

/* True while the client can be told something. */
static inline bool serve_conn_hears(const struct serve_conn *conn)
{
    return conn->out >= 0 && !conn->dead && !conn->broken;
}

/* The parameters of a begin that are about its client, beside the request. */
struct serve_claim {
    uint8_t nonce[16];
    int on_death; /* 1: "now" */
    bool again;
    bool wait_then_run;
    int64_t max_time_ms;
};

/* A request that has not been answered yet, or an op that no client asked for (id_len is
 * 0). */
struct serve_call {
    struct serve_call *next;
    struct serve_call *prev;
    struct serve_call *next_parked;
    struct serve *serve;
    struct serve_conn *conn;
    char id[SERVE_ID_MAX];
    size_t id_len;
    struct idem_op *op;
    void (*answered)(struct serve_call *call); /* The op came back. */
    void (*done)(
        struct serve_call *call); /* The same without an error: serve_ask(). */
    uint64_t attempt;  /* The one that it is about; 0: none, or a token. */
    int64_t asked_ms;  /* When the op was submitted. */
    int64_t due_ms;    /* When a parked op is submitted again. */
    int64_t settle_ms; /* Until then an op of unknown outcome is repeated. */
    int64_t pause_ms;
    struct idem_attempt *found; /* That of a token, or the call's claim. */
    bool parked;
    bool unknown; /* A copy of the op may have been applied. */
    bool cancelled;
    bool is_begin;

    /* Of a begin. */
    struct {
        struct serve_claim claim;
        bool is_http;
        int64_t until_ms; /* Of the wait; 0: it does not wait. */
        struct idem__pace pace;
        char *accept; /* Accept-Encoding; NULL: there was none. */
    } begin;
};

/* An attempt of a client. */
struct serve_attempt {
    struct serve_attempt *next;
    struct serve_attempt *prev;
    struct serve_attempt *next_numbered;
    uint64_t number;
    struct serve_conn *conn;
    struct idem_attempt *attempt;
    uint8_t nonce[16];
    char id[SERVE_ID_MAX]; /* Of the begin. */
    size_t id_len;
    bool now;         /* on_death: the work dies with the process. */
    bool lost;        /* And the client was told. */
    bool renewing;    /* A renewal by the server is in flight. */
    unsigned endings; /* Ops in flight that end it. */
    int64_t lease_ms;
    int64_t lease_end_ms; /* As the owner counts it, margin and all. */
    int64_t renew_until_ms;
    int64_t due_ms;
    uint64_t told_at; /* conn->sent, once its whole answer has been sent. */
};

#endif
