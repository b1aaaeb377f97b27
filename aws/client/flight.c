/* Signs and sends a request, takes its answer, and signs it anew once if that helps. */
#include "aws/client/client.h"

#include "aws/client/error.h"
#include "base/host.h"
#include "base/list.h"
#include "core/error.h"

#include <stdio.h>

#define SKEW_ANSWER_MAX                                                        \
    ((size_t)1024) /* A longer refusal has another reason. */

static void show(struct idem__aws_client *client)
{
    (void)pthread_mutex_lock(&client->shown.mutex);
    client->shown.clock = client->clock;
    client->shown.counters = client->counters;
    (void)pthread_mutex_unlock(&client->shown.mutex);
}

static void finish(struct idem__aws_client *client,
                   struct idem__aws_request *request)
{
    client->counters.requests++;
    client->counters.not_sent += request->outcome == IDEM__AWS_NOT_SENT;
    client->counters.no_answer += request->outcome == IDEM__AWS_NO_ANSWER;
    show(client);
    request->state = IDEM__AWS_DONE;
    IDEM__LIST_APPEND(&client->done, request);
}

void idem__aws_refuse(struct idem__aws_client *client,
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

void idem__aws_refuse_late(struct idem__aws_client *client,
                           struct idem__aws_request *request)
{
    struct idem_error why;

    if (client->unsigned_yet) {
        (void)idem__error(&why, IDEM_EUNAVAILABLE,
                          "timed out waiting for AWS credentials from %.80s",
                          client->options.provider->name);
    } else {
        (void)idem__error(&why, IDEM_EUNAVAILABLE,
                          "request to %.80s timed out before it was sent",
                          request->endpoint->host);
    }
    idem__aws_refuse(client, request, &why);
}

/* Returns the service's time, or this machine's before the first answer. */
static int64_t service_now(const struct idem__aws_client *client,
                           const struct idem_clock_reading *reading)
{
    int64_t now_ms, err_ms;

    return idem__learned_clock_now(&client->clock, reading->boot_ms, &now_ms,
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
    if (idem__aws_slot_create(&client->options, &client->sockets,
                              &client->clock, &slot, error) != 0) {
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

int idem__aws_launch(struct idem__aws_client *client,
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
                           "cannot read the clocks of this machine");
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
    if (rc == 0 &&
        curl_multi_add_handle(client->multi, slot->easy) != CURLM_OK) {
        rc = idem__error_plain(error, IDEM_ENOMEM);
    }
    if (rc != 0) {
        slot->request = request;
        give_slot(client, slot);
        return rc;
    }
    request->slot = slot;
    request->state = IDEM__AWS_RUNNING;
    IDEM__LIST_APPEND(&client->running, request);
    if (request->deadline_ms < client->running_due_ms) {
        client->running_due_ms = request->deadline_ms;
    }
    return 0;
}

void idem__aws_enqueue(struct idem__aws_client *client,
                       struct idem__aws_request *request)
{
    request->state = IDEM__AWS_QUEUED;
    IDEM__LIST_APPEND(&client->queued, request);
    if (request->deadline_ms < client->queued_due_ms) {
        client->queued_due_ms = request->deadline_ms;
    }
}

/* Signs @request anew if its refusal was about the time or the credentials of the
 * signature. False: nothing was done, and its answer stands. True: it is in flight,
 * queued or ended. Only after a refusal: nothing was applied then. */
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
    switch (idem__aws_launch(client, request, now_ms, &error)) {
    case 0:
        break;
    case 1:
        idem__aws_enqueue(client, request);
        break;
    default:
        idem__aws_refuse(client, request, &error);
        break;
    }
    return true;
}

void idem__aws_land(struct idem__aws_client *client,
                    struct idem__aws_slot *slot, CURLcode code, const char *why)
{
    struct idem__aws_request *request = slot->request;
    int64_t date_ms = slot->arrival.date_ms;
    long connections = 0;

    /* If an answer may still come on its connection, this closes that. */
    (void)curl_multi_remove_handle(client->multi, slot->easy);
    (void)curl_easy_getinfo(slot->easy, CURLINFO_NUM_CONNECTS, &connections);
    if (why != NULL) {
        (void)snprintf(slot->why, sizeof(slot->why), "%s", why);
    }
    idem__aws_slot_classify(slot, code);
    client->counters.connections += (uint64_t)connections;
    client->counters.sends += request->sends;
    IDEM__LIST_REMOVE(&client->running, request);
    give_slot(client, slot);
    if (!launch_anew(client, request, date_ms)) {
        finish(client, request);
    }
}
