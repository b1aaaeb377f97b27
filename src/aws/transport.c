/* The client: requests that wait their turn, connections that carry them, and one
 * epoll descriptor that sees all their sockets. */
#include "aws/transport.h"

#include "aws/error.h"
#include "aws/quiet.h"
#include "aws/slot.h"
#include "aws/sockets.h"
#include "base/heap.h"
#include "base/host.h"
#include "core/error.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CONNECTIONS 32
#define EVENTS 64
#define LONGEST_MS 3600000
#define SOON_MS 5 /* While credentials are being fetched. */
#define SKEW_ANSWER_MAX                                                        \
    ((size_t)1024) /* A longer refusal says something else. */

enum state {
    IDLE = 0, /* The caller's. */
    QUEUED,
    RUNNING,
    DONE,
};

struct list {
    struct idem__aws_request *first;
    struct idem__aws_request *last;
};

struct idem__aws_client {
    const struct idem__curl *curl;
    struct idem__aws_options options;
    char *ca_file;
    struct idem__sockets sockets;
    struct idem__aws_clock clock;
    struct idem__sigv4 signer;
    struct idem__aws_counters counters;

    struct idem__aws_news news;
    struct idem__aws_slot *free_slots;
    size_t slots; /* Created. */
    struct list queued;
    int64_t queued_due_ms; /* No later than the first deadline among them. */
    struct list running;
    int64_t running_due_ms; /* Likewise. */
    struct list done;
    size_t in_flight;

    bool guarded; /* Something but plain HTTP to this machine was asked for. */
    bool working;
    bool unsigned_yet; /* Credentials are being fetched. */
    bool looked;       /* At the sockets, by the last work(). */
    /* Atomic: wait() and wake() use them without the lock. */
    int64_t due_ms;
    int64_t
        sleep_until_ms; /* The wait under way ends then; -1: there is none. */
    uint64_t wakes;
    uint64_t wakes_seen; /* By wait(). */
};

/* ---- Lists ------------------------------------------------------------- */

static void append(struct list *list, struct idem__aws_request *request)
{
    request->next = NULL;
    request->prev = list->last;
    if (list->last == NULL) {
        list->first = request;
    } else {
        list->last->next = request;
    }
    list->last = request;
}

static void prepend(struct list *list, struct idem__aws_request *request)
{
    request->next = list->first;
    request->prev = NULL;
    if (list->first == NULL) {
        list->last = request;
    } else {
        list->first->prev = request;
    }
    list->first = request;
}

static void unlink_from(struct list *list, struct idem__aws_request *request)
{
    if (request->prev == NULL) {
        list->first = request->next;
    } else {
        request->prev->next = request->next;
    }
    if (request->next == NULL) {
        list->last = request->prev;
    } else {
        request->next->prev = request->prev;
    }
}

/* ---- Open and close ---------------------------------------------------- */

static int copy_ca_file(struct idem__aws_client *client,
                        struct idem_error *error)
{
    const char *path = client->options.ca_file;
    size_t len;

    if (path == NULL) {
        return 0;
    }
    if (access(path, R_OK) != 0) {
        return idem__error(error, IDEM_ECONFIG,
                           "the certificates in %.150s cannot be read: %s",
                           path, strerror(errno));
    }
    len = strlen(path) + 1;
    client->ca_file = idem__alloc(len);
    if (client->ca_file == NULL) {
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    memcpy(client->ca_file, path, len);
    client->options.ca_file = client->ca_file;
    return 0;
}

int idem__aws_client_open(const struct idem__aws_options *options,
                          struct idem__aws_client **ret_client,
                          struct idem_error *ret_error)
{
    struct idem__aws_client *client;
    const struct idem__curl *curl;
    int rc = idem__curl_get(&curl, ret_error);

    if (rc != 0) {
        return rc;
    }
    client = idem__zalloc(sizeof(*client));
    if (client == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    client->curl = curl;
    client->options = *options;
    idem__host_default(&client->options.host);
    if (client->options.connections_max == 0) {
        client->options.connections_max = CONNECTIONS;
    }
    client->due_ms = IDEM_NEVER;
    client->queued_due_ms = IDEM_NEVER;
    client->running_due_ms = IDEM_NEVER;
    client->sleep_until_ms = -1;
    if (idem__sockets_open(&client->sockets, client->options.connections_max) !=
        0) {
        rc = idem__error_plain(ret_error, IDEM_ENOMEM);
    } else {
        rc = copy_ca_file(client, ret_error);
    }
    if (rc != 0) {
        idem__aws_client_close(client);
        return rc;
    }
    *ret_client = client;
    return 0;
}

void idem__aws_client_close(struct idem__aws_client *client)
{
    struct idem__quiet quiet;

    if (client == NULL) {
        return;
    }
    assert(client->in_flight == 0);
    idem__quiet_begin(&quiet);
    while (client->free_slots != NULL) {
        struct idem__aws_slot *slot = client->free_slots;

        client->free_slots = slot->next;
        idem__aws_slot_destroy(slot);
    }
    idem__quiet_end(&quiet);
    idem__sockets_close(&client->sockets);
    idem__sigv4_finish(&client->signer);
    idem__free(client->ca_file);
    idem__free(client);
}

/* ---- One request's way ------------------------------------------------- */

static void finish(struct idem__aws_client *client,
                   struct idem__aws_request *request)
{
    client->counters.requests++;
    client->counters.not_sent += request->outcome == IDEM__AWS_NOT_SENT;
    client->counters.no_answer += request->outcome == IDEM__AWS_NO_ANSWER;
    request->state = DONE;
    append(&client->done, request);
}

/* It never got to a connection. */
static void refuse(struct idem__aws_client *client,
                   struct idem__aws_request *request,
                   const struct idem_error *why)
{
    request->outcome = IDEM__AWS_NOT_SENT;
    request->error = *why;
    request->status = 0;
    request->sends = 0;
    request->answer_len = 0;
    finish(client, request);
}

static void refuse_late(struct idem__aws_client *client,
                        struct idem__aws_request *request)
{
    struct idem_error why;

    if (client->unsigned_yet) {
        (void)
            idem__error(&why, IDEM_EUNAVAILABLE,
                        "no usable AWS credentials came from %.80s in the time "
                        "for the request",
                        client->options.provider->name);
    } else {
        (void)idem__error(&why, IDEM_EUNAVAILABLE,
                          "the time for the request to %.80s was over before "
                          "it could be sent",
                          request->endpoint->host);
    }
    refuse(client, request, &why);
}

/* The service's time, or what this machine takes for it. */
static int64_t service_now(const struct idem__aws_client *client,
                           const struct idem_clock_reading *reading)
{
    int64_t now_ms, err_ms;

    return idem__aws_clock_now(&client->clock, reading->boot_ms, &now_ms,
                               &err_ms)
               ? now_ms
               : reading->wall_ms;
}

static struct idem__aws_slot *take_slot(struct idem__aws_client *client,
                                        struct idem_error *error)
{
    struct idem__aws_slot *slot = client->free_slots;

    if (slot != NULL) {
        client->free_slots = slot->next;
        return slot;
    }
    if (idem__aws_slot_create(client->curl, &client->options, &client->sockets,
                              &client->clock, &client->news, &slot,
                              error) != 0) {
        return NULL;
    }
    client->slots++;
    return slot;
}

static void give_slot(struct idem__aws_client *client,
                      struct idem__aws_slot *slot)
{
    slot->request->slot = NULL;
    slot->request = NULL;
    slot->next = client->free_slots;
    client->free_slots = slot;
}

/* Signs @request, which is in no list, and sends it on its way. At @now_ms if
 * that is not 0, else at the service's time. 0; 1: credentials are being fetched;
 * or a code. */
static int launch(struct idem__aws_client *client,
                  struct idem__aws_request *request, int64_t now_ms,
                  struct idem_error *error)
{
    const struct idem_host *host = &client->options.host;
    struct idem__aws_provider *provider = client->options.provider;
    const struct idem__aws_credentials *credentials;
    struct idem_clock_reading reading;
    struct idem__aws_slot *slot;
    int rc;

    if (host->clock(host->ctx, &reading) != 0) {
        return idem__error(error, IDEM_EUNAVAILABLE,
                           "the clocks of this machine cannot be read");
    }
    if (now_ms == 0) {
        now_ms = service_now(client, &reading);
    }
    rc = provider->get(provider, now_ms, &credentials, error);
    client->unsigned_yet = rc == 1;
    if (rc != 0) {
        return rc;
    }
    request->serial = credentials->serial;
    slot = take_slot(client, error);
    if (slot == NULL) {
        return IDEM_ENOMEM;
    }
    slot->sent_boot_ms = reading.boot_ms;
    rc = idem__aws_slot_load(slot, request, &client->signer, credentials,
                             now_ms, error);
    if (rc != 0) {
        slot->request = request;
        give_slot(client, slot);
        return rc;
    }
    request->slot = slot;
    request->state = RUNNING;
    append(&client->running, request);
    if (request->deadline_ms < client->running_due_ms) {
        client->running_due_ms = request->deadline_ms;
    }
    idem__aws_slot_start(slot);
    return 0;
}

static void enqueue(struct idem__aws_client *client,
                    struct idem__aws_request *request)
{
    request->state = QUEUED;
    append(&client->queued, request);
    if (request->deadline_ms < client->queued_due_ms) {
        client->queued_due_ms = request->deadline_ms;
    }
}

/* True if the refusal of @request is one that a new signature mends, and it was
 * signed anew and is on its way. Only a refusal: nothing was applied. */
static bool launch_anew(struct idem__aws_client *client,
                        struct idem__aws_request *request, int64_t date_ms)
{
    struct idem__aws_provider *provider = client->options.provider;
    struct idem_slice answer = {request->answer, request->answer_len};
    struct idem__aws_error refusal;
    struct idem_error error;
    int64_t now_ms = 0;

    if (request->outcome != IDEM__AWS_ANSWERED || request->status < 400 ||
        request->status > 499 || request->answer_len > SKEW_ANSWER_MAX ||
        request->signed_anew || request->sends != 1 ||
        request->deadline_ms <= idem__mono_ms() ||
        !idem__aws_error_may_be_stale(request->error_type, answer)) {
        return false;
    }
    idem__aws_error_parse(request->status, request->error_type, answer,
                          &refusal);
    if (refusal.meaning == IDEM__AWS_SKEWED) {
        if (date_ms == 0) {
            return false;
        }
        now_ms = date_ms;
    } else if (refusal.meaning != IDEM__AWS_EXPIRED ||
               provider->expired == NULL ||
               !provider->expired(provider, request->serial)) {
        return false;
    }
    request->signed_anew = true;
    client->counters.signed_anew++;
    switch (launch(client, request, now_ms, &error)) {
    case 0:
        break;
    case 1:
        enqueue(client, request);
        break;
    default:
        refuse(client, request, &error);
        break;
    }
    return true;
}

/* Takes the request of @slot, which has ended. */
static void land(struct idem__aws_client *client, struct idem__aws_slot *slot)
{
    struct idem__aws_request *request = slot->request;
    int64_t date_ms = slot->arrival.date_ms;

    idem__aws_slot_judge(slot);
    client->counters.connections += slot->opened;
    slot->opened = 0;
    client->counters.sends += request->sends;
    unlink_from(&client->running, request);
    give_slot(client, slot);
    if (!launch_anew(client, request, date_ms)) {
        finish(client, request);
    }
}

/* ---- Working ----------------------------------------------------------- */

/* Starts what has a turn. True if something was sent on its way. */
static bool start_queued(struct idem__aws_client *client)
{
    bool launched = false;

    while (client->queued.first != NULL &&
           (client->free_slots != NULL ||
            client->slots < client->options.connections_max)) {
        struct idem__aws_request *request = client->queued.first;
        struct idem_error error;
        int rc;

        unlink_from(&client->queued, request);
        if (request->deadline_ms <= idem__mono_ms()) {
            refuse_late(client, request);
            continue;
        }
        rc = launch(client, request, /* now_ms= */ 0, &error);
        if (rc == 1) {
            /* All of them wait for the same credentials. */
            prepend(&client->queued, request);
            break;
        }
        if (rc != 0) {
            refuse(client, request, &error);
        }
        launched = launched || rc == 0;
    }
    if (client->queued.first == NULL) {
        client->queued_due_ms = IDEM_NEVER;
    }
    return launched;
}

/* Ends what waited past its deadline. */
static void end_late_queued(struct idem__aws_client *client, int64_t now_ms)
{
    struct idem__aws_request *request = client->queued.first;

    client->queued_due_ms = IDEM_NEVER;
    while (request != NULL) {
        struct idem__aws_request *next = request->next;

        if (request->deadline_ms <= now_ms) {
            unlink_from(&client->queued, request);
            refuse_late(client, request);
        } else if (request->deadline_ms < client->queued_due_ms) {
            client->queued_due_ms = request->deadline_ms;
        }
        request = next;
    }
}

/* Ends what was not answered by its deadline. */
static void end_late_running(struct idem__aws_client *client, int64_t now_ms)
{
    struct idem__aws_request *request = client->running.first;

    client->running_due_ms = IDEM_NEVER;
    for (; request != NULL; request = request->next) {
        if (request->deadline_ms <= now_ms && !request->slot->ended) {
            idem__aws_slot_end(request->slot, CURLE_OPERATION_TIMEDOUT,
                               "its time was over");
        } else if (request->deadline_ms < client->running_due_ms) {
            client->running_due_ms = request->deadline_ms;
        }
    }
}

static void end_late(struct idem__aws_client *client)
{
    int64_t now_ms;

    if (client->queued.first == NULL && client->running.first == NULL) {
        return;
    }
    now_ms = idem__mono_ms();
    if (client->queued_due_ms <= now_ms) {
        end_late_queued(client, now_ms);
    }
    if (client->running_due_ms <= now_ms) {
        end_late_running(client, now_ms);
    }
}

/* Takes what has ended. True if anything had. */
static bool collect(struct idem__aws_client *client)
{
    struct idem__aws_slot *slot;
    bool some = false;

    while ((slot = client->news.first) != NULL) {
        client->news.first = slot->next;
        land(client, slot);
        some = true;
    }
    if (client->running.first == NULL) {
        client->running_due_ms = IDEM_NEVER;
    }
    return some;
}

/* Those that libcurl still connects. */
static void run_timers(struct idem__aws_client *client)
{
    struct idem__aws_request *request = client->running.first;

    for (; client->news.opening > 0 && request != NULL;
         request = request->next) {
        struct idem__aws_slot *slot = request->slot;
        unsigned turns = 0;

        /* One that begins needs a turn or two; more would be for another call. */
        while (slot->line == IDEM__AWS_LINE_OPENING &&
               slot->curl_due_ms <= idem__mono_ms() && turns < 8) {
            idem__aws_slot_curl(slot, CURL_SOCKET_TIMEOUT, 0);
            turns++;
        }
    }
}

static void drain(const struct idem__aws_client *client)
{
    uint64_t count;

    (void)!read(client->sockets.wake, &count, sizeof(count));
}

/* A wake that nobody waited for must not keep the descriptor readable. One that
 * somebody has begun to wait for meanwhile is given back. */
static void take_wake(struct idem__aws_client *client)
{
    uint64_t one = 1;

    drain(client);
    if (__atomic_load_n(&client->sleep_until_ms, __ATOMIC_SEQ_CST) >= 0) {
        (void)!write(client->sockets.wake, &one, sizeof(one));
    }
}

/* A socket of libcurl's, which knows whose it is. */
static void run_opening(struct idem__aws_client *client, int fd, uint32_t seen)
{
    int what = ((seen & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) |
               ((seen & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
               ((seen & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0);
    struct idem__aws_request *request = client->running.first;

    for (; request != NULL; request = request->next) {
        if (request->slot->line == IDEM__AWS_LINE_OPENING) {
            idem__aws_slot_curl(request->slot, fd, what);
        } else if (request->slot->fd == fd) {
            idem__aws_slot_ready(request->slot);
        }
    }
}

static void run_sockets(struct idem__aws_client *client)
{
    struct epoll_event events[EVENTS];
    int n = idem__sockets_ready(&client->sockets, events, EVENTS);
    int i;

    for (i = 0; i < n; i++) {
        int fd = events[i].data.fd;
        struct idem__aws_slot *slot;

        if (fd == client->sockets.wake) {
            take_wake(client);
            continue;
        }
        slot = idem__sockets_owner(&client->sockets, fd);
        if (slot != NULL) {
            idem__aws_slot_ready(slot);
        } else {
            run_opening(client, fd, events[i].events);
        }
    }
}

/* Says when work() is needed next, so that a wait under way hears it. */
static void say_due(struct idem__aws_client *client, int64_t due_ms)
{
    __atomic_store_n(&client->due_ms, due_ms, __ATOMIC_SEQ_CST);
    if (due_ms < __atomic_load_n(&client->sleep_until_ms, __ATOMIC_SEQ_CST)) {
        idem__aws_wake(client);
    }
}

static void set_due(struct idem__aws_client *client)
{
    struct idem__aws_request *request = client->running.first;
    int64_t due_ms = client->queued_due_ms;

    if (client->running_due_ms < due_ms) {
        due_ms = client->running_due_ms;
    }
    for (; client->news.opening > 0 && request != NULL;
         request = request->next) {
        if (request->slot->curl_due_ms < due_ms) {
            due_ms = request->slot->curl_due_ms;
        }
    }
    if (client->queued.first != NULL &&
        (client->free_slots != NULL ||
         client->slots < client->options.connections_max)) {
        int64_t soon_ms = idem__mono_ms() + SOON_MS;

        due_ms = soon_ms < due_ms ? soon_ms : due_ms;
    }
    say_due(client, due_ms);
}

void idem__aws_work(struct idem__aws_client *client)
{
    struct idem__quiet quiet = {.blocked = false};
    bool launched;

    assert(!client->working);
    client->working = true;
    if (client->guarded) {
        idem__quiet_begin(&quiet);
    }
    launched = start_queued(client);
    run_timers(client);
    /* What was just sent is not answered yet. The caller comes back for it, and
     * then the sockets are looked at in any case. */
    client->looked = !(launched && client->looked);
    if (client->looked) {
        run_sockets(client);
    }
    end_late(client);
    /* What ended made room. */
    while (collect(client) && client->queued.first != NULL) {
        (void)start_queued(client);
        run_timers(client);
    }
    set_due(client);
    if (client->guarded) {
        idem__quiet_end(&quiet);
    }
    client->working = false;
}

void idem__aws_submit(struct idem__aws_client *client,
                      struct idem__aws_request *request)
{
    assert(request->state == IDLE);
    request->signed_anew = false;
    request->slot = NULL;
    if (request->endpoint->tls || !request->endpoint->local) {
        client->guarded = true;
    }
    enqueue(client, request);
    client->in_flight++;
    say_due(client, /* due_ms= */ 0);
}

struct idem__aws_request *idem__aws_reap(struct idem__aws_client *client)
{
    struct idem__aws_request *request = client->done.first;

    if (request != NULL) {
        unlink_from(&client->done, request);
        request->state = IDLE;
        client->in_flight--;
    }
    return request;
}

void idem__aws_abort(struct idem__aws_client *client,
                     struct idem__aws_request *request)
{
    struct idem_error why;
    struct idem__quiet quiet;

    switch (request->state) {
    case QUEUED:
        (void)idem__error(&why, IDEM_EUNAVAILABLE,
                          "the request was given up before it was sent");
        unlink_from(&client->queued, request);
        refuse(client, request, &why);
        break;
    case RUNNING:
        idem__quiet_begin(&quiet);
        request->deadline_ms = 0; /* Not to be signed anew. */
        idem__aws_slot_end(request->slot, CURLE_OPERATION_TIMEDOUT,
                           "it was not waited for");
        (void)collect(client);
        idem__quiet_end(&quiet);
        set_due(client);
        break;
    default:
        break;
    }
}

/* ---- Waiting ----------------------------------------------------------- */

/* How long to wait, in ms; says so first, because say_due() looks after it has
 * said what is due: one of the two hears the other. */
static int64_t begin_wait(struct idem__aws_client *client, int64_t until_ms)
{
    int64_t due_ms;

    __atomic_store_n(&client->sleep_until_ms, until_ms, __ATOMIC_SEQ_CST);
    due_ms = __atomic_load_n(&client->due_ms, __ATOMIC_SEQ_CST);
    if (due_ms < until_ms) {
        until_ms = due_ms;
        __atomic_store_n(&client->sleep_until_ms, until_ms, __ATOMIC_SEQ_CST);
    }
    return until_ms - idem__mono_ms();
}

void idem__aws_wait(struct idem__aws_client *client, int64_t deadline_ms)
{
    struct epoll_event event = {.data.fd = -1};
    int64_t left_ms = begin_wait(client, deadline_ms < 0 ? 0 : deadline_ms);
    uint64_t wakes = __atomic_load_n(&client->wakes, __ATOMIC_SEQ_CST);

    /* work() may have taken back the wake that is counted here. */
    if (wakes != client->wakes_seen || left_ms < 0) {
        left_ms = 0;
    }
    (void)epoll_wait(client->sockets.epoll, &event, 1,
                     left_ms > LONGEST_MS ? LONGEST_MS : (int)left_ms);
    __atomic_store_n(&client->sleep_until_ms, (int64_t)-1, __ATOMIC_SEQ_CST);
    client->wakes_seen = __atomic_load_n(&client->wakes, __ATOMIC_SEQ_CST);
    if (event.data.fd == client->sockets.wake) {
        drain(client);
    }
}

void idem__aws_wake(struct idem__aws_client *client)
{
    uint64_t one = 1;

    (void)__atomic_fetch_add(&client->wakes, 1, __ATOMIC_SEQ_CST);
    (void)!write(client->sockets.wake, &one, sizeof(one));
}

int idem__aws_fd(const struct idem__aws_client *client)
{
    return client->sockets.epoll;
}

int64_t idem__aws_due_ms(const struct idem__aws_client *client)
{
    return __atomic_load_n(&client->due_ms, __ATOMIC_SEQ_CST);
}

/* ---- Looking ----------------------------------------------------------- */

size_t idem__aws_in_flight(const struct idem__aws_client *client)
{
    return client->in_flight;
}

const struct idem__aws_clock *idem__aws_client_clock(
    const struct idem__aws_client *client)
{
    return &client->clock;
}

void idem__aws_client_counters(const struct idem__aws_client *client,
                               struct idem__aws_counters *ret_counters)
{
    *ret_counters = client->counters;
}

void idem__aws_request_finish(struct idem__aws_request *request)
{
    idem__free(request->answer);
    request->answer = NULL;
    request->answer_len = 0;
    request->answer_cap = 0;
}
