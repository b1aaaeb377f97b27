/* idem/form.h: one outcome, whichever front end replays it.
 *
 * `idem run`, a queue's consumer, a Lambda function, an HTTP gateway and a person
 * record different things: streams and an exit status, JSON, a status with headers, a
 * line of text. A retry may come through another front end than the first try. These
 * functions read the form of a result, and return how each front end replays it:
 *
 *     idem_form_read(&record->result, &form)
 *     |
 *     switch (idem_form_way(form.kind, IDEM_FRONT_GATEWAY))
 *     |
 *     +-- IDEM_WAY_ANSWER    form.http_status, idem_form_content_type(),
 *     |                      form.headers, and idem_form_next() for the body
 *     +-- IDEM_WAY_FAILED    ...
 *
 * docs/forms.md has the table, with an example of each cell. Nothing here reads or
 * writes anything but its arguments.
 *
 * The content type and the metadata of a result identify its form:
 *
 *     metadata "HTTP 201\n..."     status and headers; the bytes are the body
 *     metadata "exit 3\n"          the command ended so ("signal 9\n": died of it)
 *     ... "exit 3 complete\n"      ... and a table of <idem/outcome.h> names that
 *                                  complete: it is no failure; so "HTTP 404 complete"
 *     application/vnd.idem.output  frames: what a command wrote to both streams
 *     application/vnd.idem.lambda-error+json   what a Lambda function failed with
 *     any other content type, or none          the bytes are what they are
 *
 * An HTTP head takes precedence over the content type, which a server then chose
 * freely. A result that does not have the form that it claims is damaged, and is not
 * replayed.
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
 * an error of a Lambda function. The first is that of `curl --fail`. */
#define IDEM_FORM_EXIT_HTTP 22
#define IDEM_FORM_EXIT_ERROR 1

enum idem_form_kind {
    IDEM_FORM_NOTHING = 1, /* It was done; the bytes are not recorded. */
    IDEM_FORM_BYTES,       /* Text, or any other bytes. */
    IDEM_FORM_JSON,        /* Bytes whose content type is one of JSON. */
    IDEM_FORM_OUTPUT,      /* Frames of a command that ended with status 0. */
    IDEM_FORM_FAILURE,  /* Bytes or frames of a command that did not, and whose
                              status is not named complete. */
    IDEM_FORM_HTTP,     /* An answer of HTTP. */
    IDEM_FORM_ERROR,    /* An error of a Lambda function. */
    IDEM_FORM_NOT_KEPT, /* It was done; the result is not on record. */
    IDEM_FORM_DAMAGED,  /* It does not have the form that it claims. */
};

/* A front end that replays. A queue consumer replays as the command that it runs; its
 * message needs only that an outcome is on record. */
enum idem_front {
    IDEM_FRONT_RUN = 1,     /* `idem run`, `idem consume`. */
    IDEM_FRONT_EVENT,       /* A Lambda function, for an event. */
    IDEM_FRONT_LAMBDA_HTTP, /* A Lambda function, for a request of HTTP. */
    IDEM_FRONT_GATEWAY,     /* A server in front of an HTTP service. */
};

enum idem_way {
    /* The bytes of each stream go to that stream; those that are not in frames, to
     * standard output. The exit status is form.exit_status. */
    IDEM_WAY_PRINT = 1,
    /* The bytes go to standard error. The exit status is form.exit_status. */
    IDEM_WAY_COMPLAIN,
    /* The bytes of standard output as JSON: the value that they are; text as a string;
     * others as {"body": BASE64, "isBase64Encoded": true}; none as null. Bytes
     * are a value only if no content type says otherwise. */
    IDEM_WAY_VALUE,
    /* Status, content type, headers, and what is on standard output as the body. */
    IDEM_WAY_ANSWER,
    /* The same as a JSON object, {"statusCode": ..., "headers": ..., "body": ...}.
     * Bytes are taken for one, and given as they are, where they are such an object
     * and no content type says otherwise. */
    IDEM_WAY_RESPONSE,
    IDEM_WAY_ERROR, /* A function error: the one on record, or its exit status. */
    IDEM_WAY_FAILED,   /* Refused like a failed record. */
    IDEM_WAY_NOT_KEPT, /* Refused: the work was done, but its result was not
                          kept. */
    IDEM_WAY_CORRUPT,  /* Refused: it cannot be trusted. */
};

/* A result, taken apart. All slices point into it. */
struct idem_form {
    enum idem_form_kind kind;
    bool framed;     /* The bytes are frames. */
    bool has_exit;   /* The metadata says how a command ended. */
    bool named;      /* ... and that a table names that complete. */
    int exit_status; /* As a shell gives it; else 0, or as defined above. */
    int http_status; /* Of an answer of HTTP; else 200. */
    struct idem_slice headers;      /* For idem_http_head_next(); valid. */
    struct idem_slice coding;       /* Its Content-Encoding; empty: none. */
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

/* The table. Both must be one of the enum. */
enum idem_way idem_form_way(enum idem_form_kind kind, enum idem_front front);

/* The next piece of the bytes: the next frame, or all of them as standard output.
 * *@rest is form->bytes at first. False: there is none. A form that is damaged has no
 * pieces. */
bool idem_form_next(const struct idem_form *form, struct idem_slice *rest,
                    enum idem_stream *ret_stream, struct idem_slice *ret_bytes);

/* Takes the first frame off *@frames. 1; 0: the end; IDEM_ECORRUPT: it is malformed. */
int idem_form_frame(struct idem_slice *frames, enum idem_stream *ret_stream,
                    struct idem_slice *ret_bytes);

/* True if no content type describes the bytes: the output of a command, or a result
 * without a content type. */
bool idem_form_is_plain(const struct idem_form *form);

/* The content type of the body that a server sends: the recorded one; if there is none,
 * "text/plain; charset=utf-8" if the standard output is UTF-8, else
 * IDEM_FORM_BYTES_TYPE. Empty: the recorded response had none, or its bytes are not
 * recorded. It is a valid value of a header, and may point to a constant. */
struct idem_slice idem_form_content_type(const struct idem_form *form);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
