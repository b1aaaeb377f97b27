/* The inside of a DynamoDB store. */
#ifndef IDEM_AWS_DYNAMODB_STORE_H
#define IDEM_AWS_DYNAMODB_STORE_H

#include "aws/client/transport.h"
#include "aws/dynamodb/breaker.h"
#include "aws/dynamodb/place.h"
#include "aws/dynamodb/task/task.h"
#include "store/shared/tally.h"

#include <idem/queue.h>
#include <idem/store_parts.h>
#include <pthread.h>

struct idem__dynamodb_store {
    struct idem_store base;
    struct idem__place_conf place;
    char url[IDEM_STORE_URL_MAX + 1];
    struct idem__aws_endpoint endpoint;
    struct idem__aws_provider *provider;
    struct idem__aws_client *client; /* The leader's; but for wake. */
    struct idem__task_env env;
    struct idem__orphans orphans; /* The leader's. */
    bool answered;                /* By the service, at all. */

    pthread_mutex_t mutex; /* The next step. */
    struct idem_pending pending;
    struct idem__task *running; /* Linked both ways. */
    size_t running_len;
    struct idem__tally tally;
    bool led;
    bool stopping;
    pthread_cond_t wake; /* Of the thread. */
    pthread_t thread;
    bool threaded;

    size_t sending_len;            /* The leader's: in the client's hands. */
    struct idem__task_turns turns; /* The leader's: paused, and due. */
    bool due_next;                 /* The leader's: they got the last place. */
    int64_t due_ms;                /* The leader's: of the first that pauses. */
    struct idem__task *spare;      /* The leader's; linked by link. */
    struct idem__breaker breaker;  /* The leader's. */

    int watch; /* epoll of the client's and of timer; -1: nobody asked. */
    int timer; /* timerfd: when there is something to do in any case. */
};

/* submit, cancel and drive of struct idem_store_ops, and the thread. */
int idem__drive_submit(struct idem_store *base, struct idem_op *op);
enum idem_cancel idem__drive_cancel(struct idem_store *base,
                                    struct idem_op *op);
void idem__drive(struct idem_store *base, struct idem_queue *queue,
                 int64_t deadline_ms);
int idem__drive_start_thread(struct idem__dynamodb_store *store);

/* Lets go of everything; what nobody waits for gets a moment to end. */
void idem__drive_stop(struct idem__dynamodb_store *store);

/* fd of struct idem_store_ops. */
int idem__drive_fd(struct idem_store *base);

#endif
