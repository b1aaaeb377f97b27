/* idem/form.h: how each front end replays a recorded result.
 *
 * `idem run`, a queue's consumer, a Lambda function, an HTTP gateway and a person
 * record different things: streams and an exit status, JSON, a status with headers, a
 * line of text. A retry may come through another front end than the first try. These
 * functions read the form of a result, and look up how a front end replays it:
 *
 *     idem_form_read(&record->result, &form)
 *     |
 *     switch (idem_form_way(form.kind, IDEM_FRONT_GATEWAY))
 *     |
 *     +-- IDEM_WAY_ANSWER    form.http_status, idem_form_content_type(),
 *     |                      form.headers, and idem_form_next() for the body
 *     +-- IDEM_WAY_FAILED    ...
 *
 * docs/forms.md has the table, with an example of each cell. The functions read and
 * write only their arguments.
 *
 * The content type and the metadata of a result identify its form:
 *
 *     metadata "HTTP 201\n..."     status and headers; the bytes are the body
 *     metadata "exit 3\n"          the exit status of a command ("signal 9\n": the
 *                                  signal that killed it)
 *     ... "exit 3 complete\n"      ... which a table of <idem/outcome.h> named
 *                                  complete: not a failure; also "HTTP 404 complete"
 *     application/vnd.idem.output  frames: the output of a command on both streams
 *     application/vnd.idem.lambda-error+json   the error of a Lambda function
 *     any other content type, or none          plain bytes
 *
 * An HTTP head takes precedence over the content type, which a server then chose
 * freely. A result that does not match its form is damaged, and no front end replays
 * it.
 */
#ifndef IDEM_FORM_H
#define IDEM_FORM_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Content type of the output of a command that wrote to its standard error, in frames:
 *
 *     +--------+-------------------------+-----------+
 *     | stream | length                  | bytes     |   repeated
 *     | u8     | u32, most significant   | length of |
 *     | 1 or 2 | byte first; not 0       | them      |
 *     +--------+-------------------------+-----------+
 *
 * 1 is stdout, 2 is stderr, in the order in which the bytes arrived. If a command wrote
 * only to its standard output, the result is those bytes, with the content type
 * application/octet-stream. */
#define IDEM_FORM_FRAMES_TYPE "application/vnd.idem.output"
#define IDEM_FORM_BYTES_TYPE "application/octet-stream"

/* Content type of {"errorType": "...", "errorMessage": "..."}. */
#define IDEM_FORM_ERROR_TYPE "application/vnd.idem.lambda-error+json"

/* The exit statuses with which `idem run` replays an HTTP status of 400 or above, and
 * an error of a Lambda function. `curl --fail` uses the first one too. */
#define IDEM_FORM_EXIT_HTTP 22
#define IDEM_FORM_EXIT_ERROR 1

enum idem_form_kind {
    IDEM_FORM_NOTHING = 1, /* The work was done, and no bytes are on record. */
    IDEM_FORM_BYTES,       /* Text, or any other bytes. */
    IDEM_FORM_JSON,        /* Bytes with a content type of JSON. */
    IDEM_FORM_OUTPUT,      /* Frames of a command that ended with status 0. */
    IDEM_FORM_FAILURE,     /* Bytes or frames of a command that ended otherwise,
                              unless a table named that complete. */
    IDEM_FORM_HTTP,        /* An HTTP response. */
    IDEM_FORM_ERROR,       /* An error of a Lambda function. */
    IDEM_FORM_NOT_KEPT,    /* The work was done; its result was not kept. */
    IDEM_FORM_DAMAGED,     /* The result does not match its form. */
};

/* A front end that replays. A queue consumer replays as the command that it runs; its
 * message needs only that an outcome is on record. */
enum idem_front {
    IDEM_FRONT_RUN = 1,     /* `idem run`, `idem consume`. */
    IDEM_FRONT_EVENT,       /* A Lambda function, for an event. */
    IDEM_FRONT_LAMBDA_HTTP, /* A Lambda function, for an HTTP request. */
    IDEM_FRONT_GATEWAY,     /* A server in front of an HTTP service. */
};

enum idem_way {
    /* Print each stream to its own descriptor, and bytes without frames to standard
     * output. The exit status is form.exit_status. */
    IDEM_WAY_PRINT = 1,
    /* Print the bytes to standard error. The exit status is form.exit_status. */
    IDEM_WAY_COMPLAIN,
    /* Return standard output as JSON: bytes that are a JSON value as that value, if no
     * content type says otherwise; text as a string; other bytes as {"body": BASE64,
     * "isBase64Encoded": true}; no bytes as null. */
    IDEM_WAY_VALUE,
    /* Send status, content type and headers, with standard output as the body. */
    IDEM_WAY_ANSWER,
    /* Return the same as a JSON object, {"statusCode": ..., "headers": ..., "body":
     * ...}. Bytes that are such an object already go out as they are, if no content
     * type says otherwise. */
    IDEM_WAY_RESPONSE,
    IDEM_WAY_ERROR,    /* Fail with the error on record, or with the exit
                          status. */
    IDEM_WAY_FAILED,   /* Refuse, as for a failed record. */
    IDEM_WAY_NOT_KEPT, /* Refuse: the work was done, but its result was not
                          kept. */
    IDEM_WAY_CORRUPT,  /* Refuse: the result cannot be trusted. */
};

/* The parts of a result. All slices point into the result. */
struct idem_form {
    enum idem_form_kind kind;
    bool framed;                    /* The bytes are frames. */
    bool has_exit;                  /* The metadata has a command's ending. */
    bool named;                     /* ... and a table named it complete. */
    int exit_status;                /* As a shell reports it (128 + signal);
                                       IDEM_FORM_EXIT_HTTP or _ERROR; else 0. */
    int http_status;                /* Of an HTTP response; else 200. */
    struct idem_slice headers;      /* For idem_http_head_next(); valid. */
    struct idem_slice coding;       /* The Content-Encoding; empty: none. */
    struct idem_slice content_type; /* As recorded. */
    struct idem_slice bytes;        /* As recorded. */
};

enum idem_stream {
    IDEM_STREAM_STDOUT = 1,
    IDEM_STREAM_STDERR = 2,
};

/* Reads the form of @result; never fails, because an invalid form is IDEM_FORM_DAMAGED.
 * @result must be complete: a caller that limits bodies_max must fetch the bytes
 * first. */
void idem_form_read(const struct idem_result *result,
                    struct idem_form *ret_form);

/* Returns how @front replays a result of @kind. Both must be values of their enums. */
enum idem_way idem_form_way(enum idem_form_kind kind, enum idem_front front);

/* Returns true and the next piece of the bytes: the next frame, or all bytes as
 * standard output. *@rest is form->bytes at first. Returns false after the last piece,
 * and for a damaged form. */
bool idem_form_next(const struct idem_form *form, struct idem_slice *rest,
                    enum idem_stream *ret_stream, struct idem_slice *ret_bytes);

/* Takes the first frame off *@frames. Returns 1; 0 at the end; IDEM_ECORRUPT if the
 * frame is malformed. */
int idem_form_frame(struct idem_slice *frames, enum idem_stream *ret_stream,
                    struct idem_slice *ret_bytes);

/* True if no content type describes the bytes: the output of a command, or a result
 * without a content type. */
bool idem_form_is_plain(const struct idem_form *form);

/* Returns the content type of the body that a server sends: the recorded one; if there
 * is none, "text/plain; charset=utf-8" if standard output is UTF-8, else
 * IDEM_FORM_BYTES_TYPE. Empty: the recorded response had none, or no bytes are on
 * record. It is a valid value of a header, and may point to a constant. */
struct idem_slice idem_form_content_type(const struct idem_form *form);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
