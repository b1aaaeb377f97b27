/* The endpoint of a service: its URL, its region, and whether we may send to it. */
#ifndef IDEM_AWS_CLIENT_ENDPOINT_H
#define IDEM_AWS_CLIENT_ENDPOINT_H

#include "aws/client/settings.h"

#define IDEM__AWS_HOST_MAX 300
#define IDEM__AWS_PATH_MAX 512

struct idem__aws_endpoint {
    char service[32]; /* As it is signed: "dynamodb", "sqs", "sts". */
    char region[64];
    char host[IDEM__AWS_HOST_MAX]; /* The Host header: with a port unless it is
                                      the scheme's own. */
    char path[IDEM__AWS_PATH_MAX]; /* "/", or the endpoint's own. */
    char url[sizeof("https://") + IDEM__AWS_HOST_MAX + IDEM__AWS_PATH_MAX];
    bool tls;
    bool local; /* Loopback or link-local: no proxy is used. */
};

struct idem__aws_endpoint_options {
    const char *service;      /* "dynamodb". */
    const char *service_env;  /* Its word in AWS_ENDPOINT_URL_*: "DYNAMODB". */
    struct idem_slice region; /* len 0: from the user's settings. */
    struct idem_slice url;    /* len 0: from them too, else AWS's own. */
    bool insecure;            /* The user allows http:// to another machine. */
    const struct idem__aws_profiles *profiles; /* NULL: none. */
};

/* Returns the name of the service for people: "DynamoDB". */
const char *idem__aws_service_title(const struct idem__aws_endpoint *endpoint);

/* Finds the endpoint. In this order:
 *
 *     region  options, AWS_REGION, AWS_DEFAULT_REGION, the profile's region; an
 *             endpoint on loopback may do without ("us-east-1" is then signed)
 *     url     options, AWS_ENDPOINT_URL_<service_env>, AWS_ENDPOINT_URL, the
 *             endpoint_url of the profile's services section, the profile's own
 *             (none of these but the first if
 *             AWS_IGNORE_CONFIGURED_ENDPOINT_URLS or the profile's
 *             ignore_configured_endpoint_urls is "true"), else AWS's:
 *
 *             plain       SERVICE.REGION.amazonaws.com (.com.cn for cn-*)
 *             FIPS        SERVICE-fips.REGION.amazonaws.com
 *             dual stack  SERVICE.REGION.api.aws
 *             both        SERVICE-fips.REGION.api.aws
 *
 *             chosen by AWS_USE_FIPS_ENDPOINT and AWS_USE_DUALSTACK_ENDPOINT, or
 *             use_fips_endpoint and use_dualstack_endpoint of the profile. Other
 *             partitions have other suffixes: suffix_of() in endpoint.c
 *
 * A URL is http:// or https://, a host name or address, perhaps a port and a
 * path; it has no user, query or fragment.
 *
 * IDEM_ECONFIG  No region is set; the URL or the region is not valid; the URL is
 *               http:// to another machine, which the user has not allowed; or both
 *               a URL and FIPS or dual stack are set.
 */
int idem__aws_endpoint_resolve(const struct idem__aws_endpoint_options *options,
                               const struct idem__aws_env *env,
                               struct idem__aws_endpoint *ret_endpoint,
                               struct idem_error *ret_error);

/* Does the same with the shared files of @env in place of options->profiles.
 *
 * IDEM_ECONFIG  As above, or as idem__aws_profiles_load().
 * IDEM_ENOMEM
 */
int idem__aws_endpoint_find(const struct idem__aws_endpoint_options *options,
                            const struct idem__aws_env *env,
                            struct idem__aws_endpoint *ret_endpoint,
                            struct idem_error *ret_error);

/* Splits a URL into scheme, host, port and path: sets tls, local, host, path and url of
 * @endpoint, and whether it leads to this machine. False: it is not of a form that we
 * accept. */
bool idem__aws_url_read(struct idem_slice url,
                        struct idem__aws_endpoint *endpoint,
                        bool *ret_loopback);

#endif
