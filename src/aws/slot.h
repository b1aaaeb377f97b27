/* One easy handle of libcurl and the request that it carries. */
#ifndef IDEM_AWS_SLOT_H
#define IDEM_AWS_SLOT_H

#include "aws/curl.h"
#include "aws/sigv4.h"
#include "aws/sockets.h"
#include "aws/transport.h"

/* What arrived of an answer, beside its body. */
struct idem__aws_arrival {
    size_t header_bytes;
    bool framed;  /* A length or chunks: a cut would show. */
    bool encoded; /* In a way that was not asked for. */
    bool too_long;
    bool no_memory;
    bool has_crc32;
    uint32_t crc32;
    int64_t date_ms; /* Of a Date that the clock took in; 0: none. */
};

struct idem__aws_slot {
    const struct idem__curl *curl;
    CURL *easy;
    struct idem__aws_slot *next; /* Of the free ones. */
    struct idem__aws_request *request;
    struct idem__sockets *sockets;
    struct idem__aws_clock *clock;
    const struct idem_host *host;
    int64_t sent_boot_ms; /* Read before the request was handed over. */
    struct idem__aws_arrival arrival;
    char why[CURL_ERROR_SIZE]; /* libcurl's sentence. */

    /* The header lines, which libcurl reads where they are. */
    struct curl_slist lines[9];
    char url[sizeof(((struct idem__aws_endpoint *)0)->url)]; /* As it is set. */
    char host_line[IDEM__AWS_HOST_MAX + 8];
    char type_line[160];
    char stamp_line[40];
    char target_line[160];
    char authorization_line[IDEM__SIGV4_LEN_MAX + 16];
    char *token_line;
    size_t token_cap;
};

/* IDEM_ENOMEM, or IDEM_ECONFIG when the certificates of options->ca_file cannot
 * be used. */
int idem__aws_slot_create(const struct idem__curl *curl,
                          const struct idem__aws_options *options,
                          struct idem__sockets *sockets,
                          struct idem__aws_clock *clock,
                          struct idem__aws_slot **ret_slot,
                          struct idem_error *ret_error);

/* NULL is allowed. */
void idem__aws_slot_destroy(struct idem__aws_slot *slot);

/* Signs @request with @now_ms and sets up the easy handle, which the caller adds
 * to its multi handle.
 *
 * IDEM_EINVALID  Endpoint, target or content type are too long.
 * IDEM_ENOMEM
 */
int idem__aws_slot_load(struct idem__aws_slot *slot,
                        struct idem__aws_request *request,
                        struct idem__sigv4 *signer,
                        const struct idem__aws_credentials *credentials,
                        int64_t now_ms, int64_t timeout_ms,
                        struct idem_error *ret_error);

/* Sets the outcome of the request from how its transfer ended. */
void idem__aws_slot_judge(struct idem__aws_slot *slot, CURLcode code);

/* ---- answer.c ---------------------------------------------------------- */

/* Callbacks of libcurl; @slot is the struct idem__aws_slot. */
size_t idem__aws_on_header(char *line, size_t size, size_t n, void *slot);
size_t idem__aws_on_body(char *bytes, size_t size, size_t n, void *slot);

/* Forgets what arrived. */
void idem__aws_answer_reset(struct idem__aws_slot *slot);

/* NULL if what arrived is a whole and intact answer, else what is wrong. */
const char *idem__aws_answer_flaw(const struct idem__aws_slot *slot);

#endif
