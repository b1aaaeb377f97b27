
/*
 * ngx_http_idempotency_module: the Idempotency-Key header in front of any
 * service.  The interfaces between the parts of the module.
 *
 * A request with a key goes through these states.  Each file holds one part:
 *
 *     START --> BODY --> HASH --> BEGIN --> BEGUN      handler.c, request.c,
 *                                                      select.c, fingerprint.c
 *     BEGIN --> LIMITED --> BEGIN                      journal.c, limit.c
 *     BEGUN --> WAIT --> BEGIN                         wait.c
 *     BEGUN --> FETCH --> BEGUN                        reply.c
 *     BEGUN --> SEND --> REPLY                         reply.c, head.c
 *     BEGUN --> OWNER                                  owner.c, guard.c
 *     OWNER --> CAPTURE                                filter.c, head.c, body.c
 *     CAPTURE --> COMMIT --> SEND --> REPLY            end.c, send.c
 *
 * ctx.c creates the context of a request, and holds the request while the
 * store is asked.  <idem/exchange.h> decides what a verdict and a response
 * mean.
 *
 * store.c opens the store, and queue.c carries operations to it.  journal.c
 * keeps the outcomes that the store did not record.  It has two threads
 * (thread.c): one replays the journal, and one, for a remote store, writes each
 * outcome into the journal before the store gets it.
 */


#ifndef _NGX_HTTP_IDEMPOTENCY_H_INCLUDED_
#define _NGX_HTTP_IDEMPOTENCY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <idem/dynamodb.h>
#include <idem/exchange.h>
#include <idem/journal.h>
#include <idem/key.h>
#include <idem/queue.h>
#include <idem/setting.h>


/* The bit in r->buffered; ngx_http_image_filter_module has it too. */
#define NGX_HTTP_IDEM_BUFFERED  0x08

/* A larger body waits in a file, and counts against the next limit. */
#define NGX_HTTP_IDEM_MEMORY    65536

/*
 * Bytes of larger bodies that are in flight to or from a store at once; one
 * body alone may have more.
 */
#define NGX_HTTP_IDEM_LARGE     (16 * 1024 * 1024)


/* After so many lost answers a request no longer submits its op again. */
#define NGX_HTTP_IDEM_TRIES     3

/* How many limits a location may have. */
#define NGX_HTTP_IDEM_LIMITS    8

typedef struct ngx_http_idem_ctx_s     ngx_http_idem_ctx_t;
typedef struct ngx_http_idem_flight_s  ngx_http_idem_flight_t;
typedef struct ngx_http_idem_thread_s  ngx_http_idem_thread_t;

typedef void (*ngx_http_idem_done_pt)(ngx_http_idem_flight_t *flight);
typedef void (*ngx_http_idem_large_pt)(ngx_http_idem_ctx_t *ctx);
typedef void (*ngx_http_idem_job_pt)(ngx_http_idem_ctx_t *ctx);


/* ---- Configuration ---- */

typedef enum {
    NGX_HTTP_IDEM_OFF = 0,
    NGX_HTTP_IDEM_ON,
    NGX_HTTP_IDEM_REQUIRED
} ngx_http_idem_enable_e;


#define NGX_HTTP_IDEM_FP_OFF           0x01
#define NGX_HTTP_IDEM_FP_METHOD        0x02
#define NGX_HTTP_IDEM_FP_HOST          0x04
#define NGX_HTTP_IDEM_FP_PATH          0x08
#define NGX_HTTP_IDEM_FP_QUERY         0x10
#define NGX_HTTP_IDEM_FP_CONTENT_TYPE  0x20
#define NGX_HTTP_IDEM_FP_BODY          0x40
#define NGX_HTTP_IDEM_FP_DEFAULT       0x7e


/* One for each URL.  The fields from @store on belong to one worker. */
typedef struct {
    ngx_str_t                 url;          /* with a NUL */
    ngx_str_t                 journal_dir;  /* with a NUL; or empty */
    int64_t                   timeout;
    int64_t                   end_timeout;  /* 0: by the kind of the store */

    struct idem_store        *store;        /* NULL: it could not be opened */
    struct idem_queue        *queue;
    struct idem_journal      *journal;
    ngx_http_idem_thread_t   *writer;       /* for a remote store */
    ngx_http_idem_thread_t   *teller;       /* replays the journal */
    ngx_atomic_t              telling;      /* an outcome may wait there */
    int64_t                   vain_ms;      /* only the teller uses these: */
    ngx_uint_t                told;
    unsigned                  unreadable:1;
    ngx_connection_t         *connection;
    ngx_queue_t               turn;         /* flights of this turn */
    ngx_queue_t               fresh;        /* submitted in this turn */
    ngx_queue_t               flights;      /* submitted before */
    ngx_queue_t               large;        /* requests that wait for room */
    size_t                    large_bytes;
    ngx_queue_t               unrecorded;   /* ends to submit again */
    ngx_uint_t                unrecorded_n; /* with those in flight again */
    ngx_event_t               submit;
    ngx_event_t               again;        /* for unrecorded, and to reopen */
    ngx_log_t                *log;
    unsigned                  budgets:1;    /* some location has one */
} ngx_http_idem_store_t;


typedef ngx_msec_t (*ngx_http_idem_thread_idle_pt)(
    ngx_http_idem_thread_t *thread, ngx_http_idem_store_t *store);


typedef struct {
    ngx_str_t                 text;
    ngx_uint_t                fingerprint;  /* else a key */
    struct idem_selector     *selector;
} ngx_http_idem_select_t;


typedef struct {
    ngx_array_t               stores;       /* ngx_http_idem_store_t * */
    ngx_str_t                 owner;
    ngx_uint_t                enabled;      /* in some location */
} ngx_http_idem_main_conf_t;


typedef struct {
    ngx_str_t                 name;
    ngx_http_complex_value_t *value;        /* the subject */
    uint64_t                  max;
    int64_t                   per_ms;
} ngx_http_idem_limit_t;


typedef struct {
    ngx_uint_t                enable;
    ngx_http_idem_store_t    *store;
    ngx_http_complex_value_t *scope;
    ngx_uint_t                scope_global;
    ngx_str_t                 key_name;     /* of the header */
    ngx_http_complex_value_t *key_value;    /* in place of the header */
    ngx_http_idem_select_t   *key_from;     /* in place of both */
    ngx_http_idem_select_t   *fingerprint_from;  /* in place of the body */
    ngx_uint_t                methods;
    int64_t                   lease;
    int64_t                   retention;    /* or IDEM_NEVER */
    int64_t                   on_expired;
    int64_t                   wait;
    int64_t                   waiters;
    ngx_uint_t                fingerprint;
    ngx_array_t              *fingerprint_values;
    ngx_str_t                 fingerprint_secret;
    struct idem_outcome_table *outcomes;
    int64_t                   max_failures; /* 0: no budget */
    int64_t                   retry_after;  /* after a retry */
    struct idem_http_rules    rules;        /* these three and on_expired */
    char                     *replay_headers;  /* "Link,X-Id"; or NULL */
    int64_t                   max_request;
    int64_t                   max_response;
    ngx_flag_t                keep_input;
    ngx_array_t              *limits;       /* ngx_http_idem_limit_t */
    ngx_uint_t                store_error;  /* 1: pass */
    ngx_flag_t                chain;
} ngx_http_idem_loc_conf_t;


/* ---- One request ---- */

typedef enum {
    NGX_HTTP_IDEM_BODY = 0,  /* its body is being read */
    NGX_HTTP_IDEM_HASH,      /* its body is being hashed */
    NGX_HTTP_IDEM_BEGIN,     /* key, limit or journal are being asked */
    NGX_HTTP_IDEM_LIMITED,   /* one has answered, and the next is asked */
    NGX_HTTP_IDEM_BEGUN,     /* the store has answered */
    NGX_HTTP_IDEM_WAIT,      /* for the end of another attempt */
    NGX_HTTP_IDEM_FETCH,     /* a large result is read */
    NGX_HTTP_IDEM_OWNER,     /* the work is going on */
    NGX_HTTP_IDEM_CAPTURE,   /* the answer is coming in */
    NGX_HTTP_IDEM_COMMIT,    /* the outcome is being recorded */
    NGX_HTTP_IDEM_SEND,      /* the held part of the answer goes out */
    NGX_HTTP_IDEM_REPLY      /* the module is done with the request */
} ngx_http_idem_state_e;


/* A body that is held, in memory or in a file. */
typedef struct {
    ngx_buf_t                *memory;
    ngx_temp_file_t          *file;
    off_t                     len;
    off_t                     sent;
    ngx_buf_t                *piece;     /* of the file, on its way out */
    ngx_uint_t                done;      /* all of it was passed on */
} ngx_http_idem_body_t;


struct ngx_http_idem_ctx_s {
    ngx_http_request_t           *request;
    ngx_http_idem_loc_conf_t     *conf;
    ngx_http_idem_store_t        *store;
    ngx_http_idem_state_e         state;

    ngx_str_t                     key;
    ngx_str_t                     scope;
    uint8_t                       id[IDEM_ID_LEN];
    uint8_t                       fingerprint[IDEM_FINGERPRINT_LEN];
    unsigned                      has_id:1;   /* else: ngx_http_idem_id() */
    unsigned                      has_fingerprint:1;

    ngx_str_t                     selected;   /* for the fingerprint */

    /* hashing */
    struct idem_http_fingerprint *print;
    ngx_chain_t                  *print_chain;
    off_t                         print_pos;
    off_t                         body_len;
    ngx_event_t                   turn;

    /* what the store answered */
    ngx_http_idem_flight_t       *flight;
    struct idem_op               *begun;
    int                           code;
    enum idem_verdict             verdict;
    int64_t                       lease_left;
    int                           retry_after;  /* BUSY: in seconds */
    struct idem_slice             error;        /* of a record that failed */
    uint64_t                      fence;
    ngx_uint_t                    attempts;
    ngx_uint_t                    tries;
    unsigned                      takeover:1;
    unsigned                      told:1;     /* the journal was asked */

    /* limits */
    ngx_array_t                  *limits;     /* that apply to the request */
    ngx_uint_t                    limit_n;    /* so many of them were asked */
    unsigned                      looks:1;    /* the key is only looked at */
    unsigned                      limited:1;  /* the last one refused */

    /* a waiter */
    ngx_queue_t                   waiter;
    ngx_event_t                   wait;
    ngx_msec_t                    wait_until;
    ngx_msec_t                    wait_step;
    uint64_t                      join_fence;
    unsigned                      waiting:1;  /* in the list of waiters */
    unsigned                      waits:1;    /* has waited */

    /* an owner */
    struct idem_attempt          *attempt;
    ngx_queue_t                   owner;
    ngx_http_handler_pt           content_handler;
    ngx_event_t                   renew;
    ngx_http_idem_flight_t       *renewal;
    ngx_msec_t                    started;
    ngx_msec_t                    asked;      /* the lease counts from here */
    ngx_msec_t                    lease_end;
    unsigned                      owns:1;     /* in the list of owners */
    unsigned                      lost:1;
    unsigned                      again:1;    /* no upstream may get it again */
    unsigned                      ended:1;    /* its outcome is decided */
    unsigned                      unguarded:1;  /* runs without a record */

    /* the answer */
    struct idem_outcome           outcome;
    char                          text[IDEM_HTTP_TEXT_MAX];  /* of outcome */
    struct idem_http_head         head;
    ngx_http_idem_body_t          body;
    ngx_queue_t                   large;
    size_t                        large_bytes;
    ngx_http_idem_large_pt        large_start;
    ngx_chain_t                  *held;       /* goes out after @body */
    ngx_int_t                     problem;    /* in its place; -1: none */
    int64_t                       expires_ms;
    void                         *map;
    ngx_queue_t                   job;        /* in the queue of a thread */
    ngx_event_t                   job_guard;
    ngx_http_idem_job_pt          job_work;
    ngx_http_idem_job_pt          job_done;
    ngx_http_idem_job_pt          put_done;
    int                           job_code;
    struct idem_error             job_error;
    struct idem_journal_entry    *entry;
    ngx_msec_t                    end_until;
    unsigned                      in_large:1;
    unsigned                      kept:1;     /* the answer is a result */
    unsigned                      named:1;    /* ... which a rule completes */
    unsigned                      overflow:1;
    unsigned                      recorded:1;
    unsigned                      header_done:1;

    /* for the log */
    const char                   *verdict_name;
    const char                   *outcome_name;
};


/* An op on its way to the store, and what happens when it comes back. */
struct ngx_http_idem_flight_s {
    ngx_queue_t                   queue;
    ngx_http_idem_store_t        *store;
    struct idem_op               *op;
    int                           code;
    ngx_http_idem_ctx_t          *ctx;        /* NULL: nobody waits for it */
    ngx_http_idem_done_pt         done;
    ngx_event_t                   guard;
    ngx_msec_t                    limit;      /* of the guard; 0: the store's */
    ngx_msec_t                    until;      /* to give a lost claim back */
    ngx_uint_t                    tries;
    unsigned                      late:1;     /* timed out, still in flight */
    unsigned                      again:1;    /* the guard is a pause */
    unsigned                      ambiguous:1;    /* it may have claimed the key */

    /* for an end that outlives its request */
    struct idem_attempt          *attempt;
    struct idem_outcome           outcome;
    struct idem_journal_entry    *entry;
    size_t                        large_bytes;
};


extern ngx_module_t  ngx_http_idempotency_module;


static ngx_inline struct idem_slice
ngx_http_idem_slice(const ngx_str_t *s)
{
    return idem_bytes(s->data, s->len);
}


/* The value of a header of the request, empty where @h is NULL. */
static ngx_inline struct idem_slice
ngx_http_idem_value(const ngx_table_elt_t *h)
{
    return h != NULL ? ngx_http_idem_slice(&h->value) : idem_bytes(NULL, 0);
}


static ngx_inline ngx_uint_t
ngx_http_idem_is(const ngx_str_t *s, const char *text)
{
    return s->len == ngx_strlen(text)
           && ngx_strncasecmp(s->data, (u_char *) text, s->len) == 0;
}


/* A place in a list of headers. { &list->part, 0 } is its beginning. */
typedef struct {
    ngx_list_part_t          *part;
    ngx_uint_t                i;
} ngx_http_idem_place_t;


/* The next header, or NULL at the end. */
static ngx_inline ngx_table_elt_t *
ngx_http_idem_next_header(ngx_http_idem_place_t *place)
{
    ngx_table_elt_t  *h;

    while (place->i >= place->part->nelts) {
        if (place->part->next == NULL) {
            return NULL;
        }

        place->part = place->part->next;
        place->i = 0;
    }

    h = place->part->elts;
    return &h[place->i++];
}


/* directives.c */
char *ngx_http_idem_conf_store(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_idem_conf_scope(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_idem_conf_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_idem_complex(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_complex_value_t **cv);
char *ngx_http_idem_read(ngx_conf_t *cf, const char *name,
    const struct idem_setting *setting, u_char *text, int64_t *ret);
char *ngx_http_idem_conf_value(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_idem_conf_wait(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_idem_conf_fingerprint(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_idem_conf_outcome(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_idem_conf_headers(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


/* select_conf.c, select.c: key and fingerprint by selectors. */
char *ngx_http_idem_conf_select(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
ngx_uint_t ngx_http_idem_select_contradicts(ngx_http_idem_loc_conf_t *conf);
void ngx_http_idem_merge_select(ngx_http_idem_loc_conf_t *conf);
ngx_int_t ngx_http_idem_select(ngx_http_idem_ctx_t *ctx);


/* conf.c: all directives of a location together. */
void *ngx_http_idem_create_loc_conf(ngx_conf_t *cf);
char *ngx_http_idem_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child);


/* ctx.c: what the module knows of a request. */
ngx_http_idem_ctx_t *ngx_http_idem_ctx_create(ngx_http_request_t *r,
    ngx_http_idem_loc_conf_t *conf);

/* The request's context, also after an internal redirect; or NULL. */
ngx_http_idem_ctx_t *ngx_http_idem_ctx(ngx_http_request_t *r);

/* The identity of the record, which the first call computes; or NULL. */
const uint8_t *ngx_http_idem_id(ngx_http_idem_ctx_t *ctx);

/* Holds the request until the store has answered, and lets it go on then. */
void ngx_http_idem_hold(ngx_http_idem_ctx_t *ctx);
void ngx_http_idem_resume(ngx_http_idem_ctx_t *ctx);

/* Submits @op, and holds the request until the answer is there. */
ngx_int_t ngx_http_idem_ask(ngx_http_idem_ctx_t *ctx, struct idem_op *op,
    ngx_http_idem_done_pt done);

/* Submits the op once more if its answer was lost.  0: the answer counts. */
ngx_uint_t ngx_http_idem_ask_again(ngx_http_idem_flight_t *flight);

/* Posts @handler for the next turn of the loop, with @ctx as its data. */
void ngx_http_idem_later(ngx_http_idem_ctx_t *ctx, ngx_event_handler_pt handler);

/*
 * Ends an event handler with @rc of the request.  After NGX_DONE @r may be gone,
 * so @c was read before.
 */
void ngx_http_idem_go_on(ngx_connection_t *c, ngx_http_request_t *r,
    ngx_int_t rc);


/* handler.c: the phase handler. */
ngx_int_t ngx_http_idem_handler(ngx_http_request_t *r);

/* Claims the key.  NGX_DONE, or what the handler is to return. */
ngx_int_t ngx_http_idem_begin(ngx_http_idem_ctx_t *ctx);


/* limit.c: limits of new keys. */

/* NGX_DECLINED: go on with the key.  NGX_DONE, or what the handler is to
 * return. */
ngx_int_t ngx_http_idem_limit(ngx_http_idem_ctx_t *ctx);

/* Adds RateLimit and RateLimit-Policy for each limit that was asked. */
ngx_int_t ngx_http_idem_limit_headers(ngx_http_idem_ctx_t *ctx);
ngx_int_t ngx_http_idem_limit_refuse(ngx_http_idem_ctx_t *ctx);
char *ngx_http_idem_conf_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


/* request.c: key, scope and headers of a request. */
ngx_uint_t ngx_http_idem_request_upgrades(ngx_http_request_t *r);
ngx_int_t ngx_http_idem_request_key(ngx_http_request_t *r,
    ngx_http_idem_loc_conf_t *conf, ngx_str_t *key, ngx_int_t *problem);
ngx_int_t ngx_http_idem_request_scope(ngx_http_request_t *r,
    ngx_http_idem_loc_conf_t *conf, ngx_str_t *scope, ngx_int_t *problem);
ngx_int_t ngx_http_idem_request_strip(ngx_http_request_t *r);
ngx_int_t ngx_http_idem_request_chain(ngx_http_idem_ctx_t *ctx);
u_char *ngx_http_idem_request_copy(ngx_http_idem_ctx_t *ctx, u_char *p);
ngx_int_t ngx_http_idem_request_input(ngx_http_idem_ctx_t *ctx,
    ngx_str_t *input);


/* once.c: whether each header, argument and cookie of which @value may consist
 * comes at most once. */
ngx_uint_t ngx_http_idem_once(ngx_http_request_t *r,
    ngx_http_complex_value_t *value);


/*
 * fingerprint.c.  NGX_OK: it is in ctx->fingerprint.  NGX_AGAIN: call it again, a
 * turn later.
 */
ngx_int_t ngx_http_idem_request_hash(ngx_http_idem_ctx_t *ctx);


/* head.c: the head of an answer, recorded and replayed. */

/* Status, content type and headers, as they come from the upstream. */
ngx_int_t ngx_http_idem_record_head(ngx_http_idem_ctx_t *ctx);

ngx_int_t ngx_http_idem_replay_head(ngx_http_request_t *r,
    const struct idem_form *form);


/* owner.c: an attempt, its work and its lease. */
ngx_int_t ngx_http_idem_own(ngx_http_idem_ctx_t *ctx);
void ngx_http_idem_wrap(ngx_http_idem_ctx_t *ctx);
ngx_http_idem_ctx_t *ngx_http_idem_owner_find(ngx_http_idem_ctx_t *ctx);
void ngx_http_idem_disown(ngx_http_idem_ctx_t *ctx);

/* Whether any byte of the request may have reached the upstream. */
ngx_uint_t ngx_http_idem_sent(ngx_http_request_t *r);


/* end.c: how an attempt ends. */

/* Ends an attempt for which no request waits any more, and returns its status.
 * Takes @attempt.  @rules may be NULL if @end is IDEM_HTTP_NOT_SENT. */
enum idem_status ngx_http_idem_end_detached(ngx_http_idem_store_t *store,
    struct idem_attempt *attempt, const struct idem_http_rules *rules,
    enum idem_http_end end, const char *why);

/* Ends ctx->attempt with ctx->outcome; then the request goes on in SEND. */
void ngx_http_idem_end(ngx_http_idem_ctx_t *ctx);


/* guard.c: no request goes to an upstream twice. */

/* NGX_DECLINED: it may go on.  Else what the handler is to return. */
ngx_int_t ngx_http_idem_guard(ngx_http_idem_ctx_t *ctx);
ngx_int_t ngx_http_idem_guard_subrequest(ngx_http_request_t *r);


/* wait.c */
ngx_int_t ngx_http_idem_wait(ngx_http_idem_ctx_t *ctx);
void ngx_http_idem_wait_stop(ngx_http_idem_ctx_t *ctx);
void ngx_http_idem_wake(ngx_http_idem_store_t *store, const uint8_t *id);
void ngx_http_idem_wait_init(void);


/* store.c: the stores of a worker. */
ngx_int_t ngx_http_idem_init_process(ngx_cycle_t *cycle);
void ngx_http_idem_exit_process(ngx_cycle_t *cycle);

/* Calls @handler whenever @fd, which the caller still owns, can be read.
 * NULL: no connection is free. */
ngx_connection_t *ngx_http_idem_watch(int fd, ngx_event_handler_pt handler,
    void *data, ngx_log_t *log);
void ngx_http_idem_unwatch(ngx_connection_t *c);


/* queue.c: operations on their way to a store. */

/* Submits @op, which it takes, at the end of this turn; @done is called with the
 * answer, never from here. NULL: no memory. @attempt goes with the flight. */
ngx_http_idem_flight_t *ngx_http_idem_submit(ngx_http_idem_store_t *store,
    struct idem_op *op, ngx_http_idem_ctx_t *ctx, ngx_http_idem_done_pt done,
    struct idem_attempt *attempt);

/* The same, but only _resubmit() submits the op. */
ngx_http_idem_flight_t *ngx_http_idem_flight_create(
    ngx_http_idem_store_t *store, struct idem_op *op, ngx_http_idem_ctx_t *ctx,
    ngx_http_idem_done_pt done, struct idem_attempt *attempt);

/* Submits the op of a flight that came back again. */
void ngx_http_idem_resubmit(ngx_http_idem_flight_t *flight);
void ngx_http_idem_resubmit_after(ngx_http_idem_flight_t *flight,
    ngx_msec_t pause);
void ngx_http_idem_flight_free(ngx_http_idem_flight_t *flight);

/* Takes the first flight off @queue; NULL: it is empty. */
ngx_http_idem_flight_t *ngx_http_idem_flight_pop(ngx_queue_t *queue);

/* Why it failed, for the log; never empty. */
const char *ngx_http_idem_flight_reason(ngx_http_idem_flight_t *flight);

/* For store.c: submit the ops of a turn, take the answers of the store, give
 * one flight its answer. */
void ngx_http_idem_turn_handler(ngx_event_t *ev);
void ngx_http_idem_turn(ngx_http_idem_store_t *store);
void ngx_http_idem_queue_handler(ngx_event_t *ev);
void ngx_http_idem_land(ngx_http_idem_flight_t *flight, int code);


/*
 * Calls @start as soon as @bytes fit into NGX_HTTP_IDEM_LARGE.  _release()
 * gives them back.
 */
void ngx_http_idem_large_acquire(ngx_http_idem_ctx_t *ctx, size_t bytes,
    ngx_http_idem_large_pt start);
void ngx_http_idem_large_release(ngx_http_idem_store_t *store, size_t bytes);


/* journal.c: outcomes that the store did not record. */

/*
 * Keeps the outcome of @attempt in the journal, and submits it again later.
 * Takes @attempt, and @entry, under which the journal already has the outcome;
 * or NULL.
 */
void ngx_http_idem_journal_keep(ngx_http_idem_store_t *store,
    struct idem_attempt *attempt, const struct idem_outcome *outcome,
    struct idem_journal_entry *entry);
void ngx_http_idem_journal_again(ngx_http_idem_store_t *store);
void ngx_http_idem_journal_open(ngx_http_idem_store_t *store);
void ngx_http_idem_journal_close(ngx_http_idem_store_t *store);


/*
 * Records in the store the outcomes of the request's key that wait in the
 * journal, before the key is looked up.  NGX_DONE: the request is held
 * meanwhile, and refused if one of them stays there, or at once if one is in
 * the memory of this worker alone.  NGX_DECLINED: none is known to wait.
 */
ngx_int_t ngx_http_idem_journal_tell(ngx_http_idem_ctx_t *ctx);

/* Puts ctx->outcome into the journal; it must not change before @done is
 * called. */
void ngx_http_idem_journal_put(ngx_http_idem_ctx_t *ctx,
    ngx_http_idem_job_pt done);


/* thread.c: a thread for blocking calls. */

/* Without a job the thread calls @idle, unless it is NULL, and again after the
 * milliseconds that it returns.  It may run before this has returned. */
ngx_http_idem_thread_t *ngx_http_idem_thread_start(
    ngx_http_idem_store_t *store, ngx_http_idem_thread_idle_pt idle);
/* Waits until the thread has finished its job. */
void ngx_http_idem_thread_stop(ngx_http_idem_thread_t *thread);
/* The thread calls @work, and then the event loop @done.  The request must be
 * held. */
void ngx_http_idem_thread_ask(ngx_http_idem_thread_t *thread,
    ngx_http_idem_ctx_t *ctx, ngx_http_idem_job_pt work,
    ngx_http_idem_job_pt done);
/* For the idle function: whether a job waits, so that it should return. */
ngx_uint_t ngx_http_idem_thread_wanted(ngx_http_idem_thread_t *thread);


/* filter.c */
void ngx_http_idem_filter_init(void);

/* Sets the outcome of work that gave no whole answer, and a problem to send. */
void ngx_http_idem_may_have_happened(ngx_http_idem_ctx_t *ctx,
    const char *text);

/* Drops the result: the record will state only that the work was done. */
void ngx_http_idem_not_kept(ngx_http_idem_ctx_t *ctx);

/* Records ctx->outcome, and sends the answer after that.  Returns NGX_AGAIN. */
ngx_int_t ngx_http_idem_commit(ngx_http_idem_ctx_t *ctx);
extern ngx_http_output_header_filter_pt  ngx_http_idem_next_header_filter;
extern ngx_http_output_body_filter_pt    ngx_http_idem_next_body_filter;


/* send.c: passes on as much of the answer as the client takes. */
ngx_int_t ngx_http_idem_send(ngx_http_idem_ctx_t *ctx);


/* body.c: a body that is held. */
ngx_int_t ngx_http_idem_body_borrow(ngx_http_request_t *r,
    ngx_http_idem_body_t *body, struct idem_slice bytes);
/* A part that could not be added leaves @body as it was. */
ngx_int_t ngx_http_idem_body_add(ngx_http_request_t *r,
    ngx_http_idem_body_t *body, u_char *data, size_t len, off_t expected);

/* All of it as one slice; *@map must be given to _unmap(). */
ngx_int_t ngx_http_idem_body_slice(ngx_http_idem_body_t *body,
    struct idem_slice *slice, void **map, ngx_log_t *log);
void ngx_http_idem_body_unmap(ngx_http_idem_body_t *body, void *map);

/* Passes on as much as the client takes.  @last: it ends the answer. */
ngx_int_t ngx_http_idem_body_send(ngx_http_request_t *r,
    ngx_http_idem_body_t *body, ngx_uint_t last);


/* reply.c: runs, answers or refuses a request by its verdict. */
ngx_int_t ngx_http_idem_reply_verdict(ngx_http_idem_ctx_t *ctx);


/* problem.c: problem bodies, and headers that the module adds. */
ngx_int_t ngx_http_idem_reply_problem(ngx_http_request_t *r,
    enum idem_http_problem_kind kind, time_t retry_after);

/* Prepares r->headers_out for a problem; its body is @body. */
ngx_int_t ngx_http_idem_problem_header(ngx_http_request_t *r,
    enum idem_http_problem_kind kind, ngx_str_t *body);
ngx_int_t ngx_http_idem_add_header(ngx_http_request_t *r, const char *name,
    const char *value, size_t len);
ngx_int_t ngx_http_idem_add_expires(ngx_http_request_t *r, int64_t expires_ms);


/* variables.c: for the log. */
ngx_int_t ngx_http_idem_add_variables(ngx_conf_t *cf);


#endif /* _NGX_HTTP_IDEMPOTENCY_H_INCLUDED_ */
