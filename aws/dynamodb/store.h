/* The handle of a DynamoDB store. */
#ifndef IDEM_AWS_DYNAMODB_STORE_H
#define IDEM_AWS_DYNAMODB_STORE_H

#include "aws/client/transport.h"
#include "aws/dynamodb/place.h"
#include "aws/dynamodb/task/task.h"
#include "store/remote/remote.h"

struct idem__dynamodb_store {
    struct idem__remote remote;
    struct idem__place_conf place;
    char url[IDEM_STORE_URL_MAX + 1];
    struct idem__aws_endpoint endpoint;
    struct idem__aws_provider *provider;

    /* Only the leader uses these; but any thread may wake the client, and read what it
     * shows of its counters and clock, and parts_purged. */
    struct idem__aws_client *client;
    struct idem__task_env env;
    uint64_t parts_purged;
    struct idem__gate gate;
    bool answered; /* The service has answered at least once. */
};

#endif
