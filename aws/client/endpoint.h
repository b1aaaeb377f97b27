/* Where a service is: its URL, its region, and whether we may talk to it. */
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
    bool local; /* Loopback or link-local: no proxy is asked. */
};

struct idem__aws_endpoint_options {
    const char *service;      /* "dynamodb". */
    const char *service_env;  /* Its word in AWS_ENDPOINT_URL_*: "DYNAMODB". */
    struct idem_slice region; /* len 0: as the user's settings say. */
    struct idem_slice url;    /* len 0: likewise, else AWS's own. */
    bool insecure;            /* http:// to another machine was asked for. */
    const struct idem__aws_profiles *profiles; /* NULL: there are none. */
};

/* "DynamoDB", for people. */
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
 *             as AWS_USE_FIPS_ENDPOINT and AWS_USE_DUALSTACK_ENDPOINT, or
 *             use_fips_endpoint and use_dualstack_endpoint of the profile say
 *
 * A URL is http:// or https://, a host name or address, perhaps a port and a
 * path; it has no user, query or fragment.
 *
 * IDEM_ECONFIG  No region; or the URL or the region cannot be one; or it is
 *               http:// to another machine, and that was not asked for; or FIPS
 *               or dual stack is wanted, and a URL set.
 */
int idem__aws_endpoint_resolve(const struct idem__aws_endpoint_options *options,
                               const struct idem__aws_env *env,
                               struct idem__aws_endpoint *ret_endpoint,
                               struct idem_error *ret_error);

/* The same with the shared files of @env, which options->profiles need not name.
 * Where nothing names a region and there should be one, the instance metadata
 * service is asked, which may take some seconds where there is none.
 *
 * IDEM_ECONFIG  As above, or what idem__aws_profiles_load() says.
 * IDEM_ENOMEM
 */
int idem__aws_endpoint_find(const struct idem__aws_endpoint_options *options,
                            const struct idem__aws_env *env,
                            struct idem__aws_endpoint *ret_endpoint,
                            struct idem_error *ret_error);

/* Takes a URL apart: scheme, host, port, path; sets tls, local, host, path and url
 * of @endpoint, and whether it leads to this machine. False: it is none that we
 * use. */
bool idem__aws_url_read(struct idem_slice url,
                        struct idem__aws_endpoint *endpoint,
                        bool *ret_loopback);

#endif
