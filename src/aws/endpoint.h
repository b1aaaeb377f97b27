/* Where a service is: its URL, its region, and whether we may talk to it. */
#ifndef IDEM_AWS_ENDPOINT_H
#define IDEM_AWS_ENDPOINT_H

#include "aws/env.h"

#define IDEM__AWS_HOST_MAX 300
#define IDEM__AWS_PATH_MAX 512

struct idem__aws_endpoint {
    char service[32]; /* As it is signed: "dynamodb", "sqs", "sts". */
    char region[64];
    char host[IDEM__AWS_HOST_MAX]; /* The Host header: with a port unless it is
                                      the scheme's own. */
    char path[IDEM__AWS_PATH_MAX]; /* "/", or the endpoint's own. */
    char url[IDEM__AWS_HOST_MAX + IDEM__AWS_PATH_MAX];
    bool tls;
    bool local; /* Loopback or link-local: no proxy is asked. */
};

struct idem__aws_endpoint_options {
    const char *service;      /* "dynamodb". */
    const char *service_env;  /* Its word in AWS_ENDPOINT_URL_*: "DYNAMODB". */
    struct idem_slice region; /* len 0: from the environment. */
    struct idem_slice url;    /* len 0: from the environment, else AWS's own. */
    bool insecure;            /* http:// to another machine was asked for. */
};

/* Finds the endpoint. In this order:
 *
 *     region  options, AWS_REGION, AWS_DEFAULT_REGION; an endpoint on loopback
 *             may do without ("us-east-1" is then signed)
 *     url     options, AWS_ENDPOINT_URL_<service_env>, AWS_ENDPOINT_URL (neither
 *             if AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is "true"),
 *             https://SERVICE.REGION.amazonaws.com (.com.cn for cn-*)
 *
 * A URL is http:// or https://, a host name or address, perhaps a port and a
 * path; it has no user, query or fragment.
 *
 * IDEM_ECONFIG  No region; or the URL or the region cannot be one; or it is
 *               http:// to another machine, and that was not asked for.
 */
int idem__aws_endpoint_resolve(const struct idem__aws_endpoint_options *options,
                               const struct idem__aws_env *env,
                               struct idem__aws_endpoint *ret_endpoint,
                               struct idem_error *ret_error);

#endif
