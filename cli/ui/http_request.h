/* http_request.h: a request to idem ui, from libmicrohttpd to its answer. */
#ifndef IDEM_CLI_UI_HTTP_REQUEST_H
#define IDEM_CLI_UI_HTTP_REQUEST_H

#include "ui/page.h"
#include "ui/ui.h"

#include <idem.h>
#include <microhttpd.h>
#include <stdio.h>

/* ---- libmicrohttpd, loaded when it is needed ---- */

#define UI_MHD_MAP(X)                                                          \
    X(start_daemon)                                                            \
    X(stop_daemon)                                                             \
    X(create_response_from_buffer)                                             \
    X(add_response_header)                                                     \
    X(queue_response)                                                          \
    X(destroy_response)                                                        \
    X(lookup_connection_value)                                                 \
    X(create_post_processor)                                                   \
    X(post_process)                                                            \
    X(destroy_post_processor)

struct ui_mhd {
#define X(name) __typeof__(MHD_##name) *name;
    UI_MHD_MAP(X)
#undef X
};

/* NULL after an error message. */
const struct ui_mhd *ui_mhd(void);

/* ---- The fields of a form ---- */

#define UI_TEXT_MAX 4096

/* A value that a person typed, or that a link of idem ui has. */
struct ui_field {
    char text[UI_TEXT_MAX + 1]; /* With a NUL after len. */
    size_t len;
    bool too_long;
};

struct ui_form {
    struct ui_field decision; /* "complete", "fail", "release". */
    struct ui_field result;
    struct ui_field http; /* Its status, if it is an HTTP response. */
    struct ui_field type; /* Its content type. */
    struct ui_field reason;
    struct ui_field force; /* "yes": although the lease of its owner runs. */
    struct ui_field fence;
    struct ui_field token; /* Of the person who logs in. */
    struct ui_field scope; /* In hex, of links; as typed, of a search. */
    struct ui_field key;
};

/* The field of @form that is called @name; NULL: there is none. */
struct ui_field *ui_form_field(struct ui_form *form, const char *name);

/* Adds the bytes that came to @field. */
void ui_field_add(struct ui_field *field, const char *bytes, size_t len);

/* Reads @field, which is hex, into @buf of @max bytes. */
bool ui_field_unhex(const struct ui_field *field, uint8_t *buf, size_t max,
                    size_t *ret_len);

/* Takes as long for a wrong text as for the right one. */
bool ui_same(const char *given, size_t len, const char *right);

/* ---- A request ---- */

struct ui_server {
    const struct ui_mhd *mhd;
    const struct ui_options *options;
    struct MHD_Daemon *daemon;
    char origin[80]; /* "http://127.0.0.1:8080" */
};

struct ui_request {
    struct ui_server *server;
    struct MHD_Connection *connection;
    /* Set for a form once its headers were accepted: the reader of its body, and the
     * function that then answers. */
    struct MHD_PostProcessor *post;
    enum MHD_Result (*answer)(const struct ui_request *request);
    size_t body_len;
    struct ui_form form;
};

/* ---- respond.c ---- */

/* The value of @name in the request, or NULL. */
const char *ui_value(const struct ui_request *request, enum MHD_ValueKind kind,
                     const char *name);

/* True of a body that is encoded as forms are by default. */
bool ui_is_form(const struct ui_request *request);

/* @body is copied. @name and @value: one more header; may be NULL. */
enum MHD_Result ui_answer(const struct ui_request *request, unsigned status,
                          const char *type, struct idem_slice body,
                          const char *name, const char *value);

/* A page in memory: what is written to f goes into text. Once it is open it must be
 * sent. */
struct ui_page {
    FILE *f;
    char *text;
    size_t len;
};

bool ui_page_open(struct ui_page *page);
enum MHD_Result ui_page_send(const struct ui_request *request,
                             struct ui_page *page, unsigned status);

/* The same; with @again the browser reloads it each minute. */
enum MHD_Result ui_page_send_again(const struct ui_request *request,
                                   struct ui_page *page, unsigned status,
                                   bool again);

/* The style sheet. */
enum MHD_Result ui_style(const struct ui_request *request);

/* A sentence under a title. */
enum MHD_Result ui_say(const struct ui_request *request, unsigned status,
                       const char *title, const char *text);

/* Answers with the error of the store. */
enum MHD_Result ui_fail(const struct ui_request *request,
                        const struct idem_error *error);

/* True for an error that is not about a record: the store does not answer. */
bool ui_is_outage(int code);

/* The page of an outage; @decided: a decision was on its way. @back is where to try
 * again. */
enum MHD_Result ui_outage(const struct ui_request *request,
                          const struct idem_error *error, bool decided,
                          const char *back);

/* ---- respond.c: who asks ---- */

/* True if the request was sent to the address that idem ui printed. */
bool ui_came_to_us(const struct ui_request *request);

/* True if the request comes from a page of idem ui, as far as the browser says. */
bool ui_came_from_us(const struct ui_request *request);

/* The path after the secret of the session, such as "/record"; NULL: @path does not
 * have it. */
const char *ui_path_inside(const struct ui_request *request, const char *path);
enum MHD_Result ui_ask_who(const struct ui_request *request, bool wrong);
enum MHD_Result ui_log_in(const struct ui_request *request);

/* ---- lists.c, action.c: for a person who has logged in ---- */

enum MHD_Result ui_list(const struct ui_request *request);

/* The open records that match @search. */
enum MHD_Result ui_list_found(const struct ui_request *request,
                              const struct page_search *search);
enum MHD_Result ui_record(const struct ui_request *request);

/* The record of exactly this scope and key, or else the open records that match. */
enum MHD_Result ui_search(const struct ui_request *request);

/* ---- lists.c: for a program that sends the token ---- */

enum MHD_Result ui_metrics(const struct ui_request *request);

/* ---- action.c ---- */

/* Decides what becomes of a record. */
enum MHD_Result ui_resolve(const struct ui_request *request);

/* Lets its work be run again. */
enum MHD_Result ui_reopen(const struct ui_request *request);

#endif
