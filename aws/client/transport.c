/* The client: its queue of requests, libcurl's multi handle, which keeps the connections,
 * and one descriptor for all its sockets. */
#include "aws/client/transport.h"

#include "aws/client/client.h"
#include "aws/client/curl.h"
#include "base/heap.h"
#include "base/host.h"
#include "base/list.h"
#include "base/wait.h"
#include "core/error.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#define CONNECTIONS 32
#define LONGEST_MS 3600000
#define SOON_MS 5 /* While credentials are being fetched. */

/* ---- libcurl's callbacks ----------------------------------------------- */

/* libcurl calls this to have us wait for a socket. If we cannot, do not return an error:
 * libcurl would take all its transfers for lost. The deadline ends that one request. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx,
                     void *known)
{
    struct idem__aws_client *client = ctx;
    short wanted = 0;

    (void)easy;
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) {
        wanted |= POLLIN;
    }
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) {
        wanted |= POLLOUT;
    }
    if (wanted != 0 && known == NULL) {
        (void)curl_multi_assign(client->multi, fd, client);
    }
    (void)idem__sockets_want(&client->sockets, fd, wanted, known == NULL);
    return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *ctx)
{
    struct idem__aws_client *client = ctx;

    (void)multi;
    client->curl_due_ms = timeout_ms < 0
                              ? IDEM_NEVER
                              : idem__time_add(idem__mono_ms(), timeout_ms);
    return 0;
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
                           "cannot read the certificates in %.150s: %s", path,
                           strerror(errno));
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

static int open_multi(struct idem__aws_client *client)
{
    CURLMcode (*set)(CURLM *, CURLMoption, ...) = curl_multi_setopt;
    long connections = (long)client->options.connections_max;
    int bad = 0;

    client->multi = curl_multi_init();
    if (client->multi == NULL) {
        return IDEM_ENOMEM;
    }
    bad |= set(client->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    bad |= set(client->multi, CURLMOPT_SOCKETDATA, client);
    bad |= set(client->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    bad |= set(client->multi, CURLMOPT_TIMERDATA, client);
    bad |= set(client->multi, CURLMOPT_MAXCONNECTS, connections);
    return bad == 0 ? 0 : IDEM_ENOMEM;
}

int idem__aws_client_open(const struct idem__aws_options *options,
                          struct idem__aws_client **ret_client,
                          struct idem_error *ret_error)
{
    struct idem__aws_client *client;
    int rc = idem__curl_ready(ret_error);

    if (rc != 0) {
        return rc;
    }
    client = idem__zalloc(sizeof(*client));
    if (client == NULL) {
        return idem__error_plain(ret_error, IDEM_ENOMEM);
    }
    (void)pthread_mutex_init(&client->shown.mutex, NULL);
    client->options = *options;
    idem__host_default(&client->options.host);
    if (client->options.connections_max == 0) {
        client->options.connections_max = CONNECTIONS;
    }
    client->curl_due_ms = IDEM_NEVER;
    client->due_ms = IDEM_NEVER;
    client->queued_due_ms = IDEM_NEVER;
    client->running_due_ms = IDEM_NEVER;
    client->sleep_until_ms = -1;
    if (idem__sockets_open(&client->sockets, client->options.connections_max) !=
            0 ||
        open_multi(client) != 0) {
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
    if (client->multi != NULL) {
        (void)curl_multi_cleanup(client->multi);
    }
    idem__quiet_end(&quiet);
    idem__sockets_close(&client->sockets);
    idem__sigv4_finish(&client->signer);
    idem__free(client->ca_file);
    (void)pthread_mutex_destroy(&client->shown.mutex);
    idem__free(client);
}

/* ---- Working ----------------------------------------------------------- */

/* Starts queued requests while there are free slots. True if it launched any. */
static bool start_queued(struct idem__aws_client *client)
{
    bool launched = false;

    while (client->queued.first != NULL &&
           (client->free_slots != NULL ||
            client->slots < client->options.connections_max)) {
        struct idem__aws_request *request = client->queued.first;
        struct idem_error error;
        int rc;

        IDEM__LIST_REMOVE(&client->queued, request);
        if (request->deadline_ms <= idem__mono_ms()) {
            idem__aws_refuse_late(client, request);
            continue;
        }
        rc = idem__aws_launch(client, request, /* now_ms= */ 0, &error);
        if (rc == 1) {
            /* The others need the same credentials, so they wait, too. */
            IDEM__LIST_PREPEND(&client->queued, request);
            break;
        }
        if (rc != 0) {
            idem__aws_refuse(client, request, &error);
        }
        launched = launched || rc == 0;
    }
    if (client->queued.first == NULL) {
        client->queued_due_ms = IDEM_NEVER;
    }
    return launched;
}

/* Ends the queued requests whose deadline has passed. */
static void end_late_queued(struct idem__aws_client *client, int64_t now_ms)
{
    struct idem__aws_request *request = client->queued.first;

    client->queued_due_ms = IDEM_NEVER;
    while (request != NULL) {
        struct idem__aws_request *next = request->next;

        if (request->deadline_ms <= now_ms) {
            IDEM__LIST_REMOVE(&client->queued, request);
            idem__aws_refuse_late(client, request);
        } else if (request->deadline_ms < client->queued_due_ms) {
            client->queued_due_ms = request->deadline_ms;
        }
        request = next;
    }
}

/* Ends the running requests that were not answered by their deadline. */
static void end_late_running(struct idem__aws_client *client, int64_t now_ms)
{
    struct idem__aws_request *request = client->running.first;

    client->running_due_ms = IDEM_NEVER;
    while (request != NULL) {
        struct idem__aws_request *next = request->next;

        if (request->deadline_ms <= now_ms) {
            idem__aws_land(client, request->slot, CURLE_OPERATION_TIMEDOUT,
                           "timed out");
        } else if (request->deadline_ms < client->running_due_ms) {
            client->running_due_ms = request->deadline_ms;
        }
        request = next;
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

/* Takes the requests that libcurl has finished. */
static void collect(struct idem__aws_client *client)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(client->multi, &left)) != NULL) {
        CURLcode code = message->data.result;
        char *slot = NULL;

        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &slot);
        idem__aws_land(client, (struct idem__aws_slot *)(void *)slot, code,
                       /* why= */ NULL);
    }
    if (client->running.first == NULL) {
        client->running_due_ms = IDEM_NEVER;
    }
}

/* Lets libcurl begin new transfers, and handle its own timeouts. */
static void run_timers(struct idem__aws_client *client)
{
    int running;
    unsigned turns = 0;

    /* A new transfer needs a turn or two; leave more than eight for another call. */
    while (client->curl_due_ms <= idem__mono_ms() && turns < 8) {
        client->curl_due_ms = IDEM_NEVER;
        (void)curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0,
                                       &running);
        turns++;
    }
}

/* Clears a wake that came while nobody waited, so that it does not keep the descriptor
 * readable. If a thread has begun to wait meanwhile, the wake may be for that one: set it
 * again. */
static void take_wake(struct idem__aws_client *client)
{
    idem__event_clear(client->sockets.wake);
    if (__atomic_load_n(&client->sleep_until_ms, __ATOMIC_SEQ_CST) >= 0) {
        idem__event_set(client->sockets.wake);
    }
}

static void run_sockets(struct idem__aws_client *client)
{
    struct pollfd ready[IDEM__WATCH_MAX];
    int n = idem__sockets_ready(&client->sockets, ready, IDEM__WATCH_MAX);
    int running;
    int i;

    for (i = 0; i < n; i++) {
        int seen = ready[i].revents;
        int what = ((seen & POLLIN) != 0 ? CURL_CSELECT_IN : 0) |
                   ((seen & POLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                   ((seen & (POLLERR | POLLHUP)) != 0 ? CURL_CSELECT_ERR : 0);

        if (ready[i].fd == client->sockets.wake) {
            take_wake(client);
        } else {
            (void)curl_multi_socket_action(client->multi, ready[i].fd, what,
                                           &running);
        }
    }
}

/* Publishes when work() is needed next, and wakes a thread that would sleep past that. */
static void say_due(struct idem__aws_client *client, int64_t due_ms)
{
    __atomic_store_n(&client->due_ms, due_ms, __ATOMIC_SEQ_CST);
    if (due_ms < __atomic_load_n(&client->sleep_until_ms, __ATOMIC_SEQ_CST)) {
        idem__aws_wake(client);
    }
}

static void set_due(struct idem__aws_client *client)
{
    int64_t due_ms = client->queued_due_ms;

    if (client->running_due_ms < due_ms) {
        due_ms = client->running_due_ms;
    }
    if (client->curl_due_ms < due_ms) {
        due_ms = client->curl_due_ms;
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
    run_timers(client);
    do {
        /* Read first, so that no request goes to a connection on which something has come
         * unrequested. A request launched below has no answer yet; the caller comes back
         * for that. */
        run_sockets(client);
        collect(client);
        end_late(client);
        launched = start_queued(client);
        run_timers(client);
        collect(client);
        /* Requests that ended have made room for queued ones. */
    } while (launched && client->queued.first != NULL);
    set_due(client);
    if (client->guarded) {
        idem__quiet_end(&quiet);
    }
    client->working = false;
}

void idem__aws_submit(struct idem__aws_client *client,
                      struct idem__aws_request *request)
{
    assert(request->state == IDEM__AWS_IDLE);
    request->signed_anew = false;
    request->timed_out = false;
    request->submitted_ms = idem__mono_ms();
    request->slot = NULL;
    if (request->endpoint->tls || !request->endpoint->local) {
        client->guarded = true;
    }
    idem__aws_enqueue(client, request);
    client->in_flight++;
    say_due(client, /* due_ms= */ 0);
}

struct idem__aws_request *idem__aws_reap(struct idem__aws_client *client)
{
    struct idem__aws_request *request = client->done.first;

    if (request != NULL) {
        IDEM__LIST_REMOVE(&client->done, request);
        request->state = IDEM__AWS_IDLE;
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
    case IDEM__AWS_QUEUED:
        (void)idem__error(&why, IDEM_EUNAVAILABLE,
                          "the request was cancelled before it was sent");
        IDEM__LIST_REMOVE(&client->queued, request);
        idem__aws_refuse(client, request, &why);
        break;
    case IDEM__AWS_RUNNING:
        idem__quiet_begin(&quiet);
        request->deadline_ms = 0; /* Then it is not signed anew. */
        idem__aws_land(client, request->slot, CURLE_OPERATION_TIMEDOUT,
                       "the request was cancelled");
        idem__quiet_end(&quiet);
        set_due(client);
        break;
    default:
        break;
    }
}

/* ---- Waiting ----------------------------------------------------------- */

/* Returns how long to wait, in ms. Publishes the end of the wait before it reads what is
 * due, and say_due() does these in the opposite order, so at least one of the two threads
 * sees the other's value: no wake-up is lost. */
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
    struct pollfd ready = {.fd = -1};
    int64_t left_ms = begin_wait(client, deadline_ms < 0 ? 0 : deadline_ms);
    uint64_t wakes = __atomic_load_n(&client->wakes, __ATOMIC_SEQ_CST);

    /* The event may be clear although this wake was counted: work() may have cleared it
     * before we began to wait. */
    if (wakes != client->wakes_seen || left_ms < 0) {
        left_ms = 0;
    }
    (void)idem__watch_wait(client->sockets.watch, &ready, 1,
                           left_ms > LONGEST_MS ? LONGEST_MS : (int)left_ms);
    __atomic_store_n(&client->sleep_until_ms, (int64_t)-1, __ATOMIC_SEQ_CST);
    client->wakes_seen = __atomic_load_n(&client->wakes, __ATOMIC_SEQ_CST);
    if (ready.fd == client->sockets.wake) {
        idem__event_clear(client->sockets.wake);
    }
}

void idem__aws_wake(struct idem__aws_client *client)
{
    (void)__atomic_fetch_add(&client->wakes, 1, __ATOMIC_SEQ_CST);
    idem__event_set(client->sockets.wake);
}

int idem__aws_fd(const struct idem__aws_client *client)
{
    return client->sockets.watch;
}

int64_t idem__aws_due_ms(const struct idem__aws_client *client)
{
    return __atomic_load_n(&client->due_ms, __ATOMIC_SEQ_CST);
}

/* ---- Looking ----------------------------------------------------------- */

const struct idem__learned_clock *idem__aws_client_clock(
    const struct idem__aws_client *client)
{
    return &client->clock;
}

void idem__aws_client_counters(struct idem__aws_client *client,
                               struct idem__aws_counters *ret_counters)
{
    (void)pthread_mutex_lock(&client->shown.mutex);
    *ret_counters = client->shown.counters;
    (void)pthread_mutex_unlock(&client->shown.mutex);
}

void idem__aws_client_shown_clock(struct idem__aws_client *client,
                                  struct idem__learned_clock *ret_clock)
{
    (void)pthread_mutex_lock(&client->shown.mutex);
    *ret_clock = client->shown.clock;
    (void)pthread_mutex_unlock(&client->shown.mutex);
}

void idem__aws_request_finish(struct idem__aws_request *request)
{
    idem__free(request->answer);
    request->answer = NULL;
    request->answer_len = 0;
    request->answer_cap = 0;
}
