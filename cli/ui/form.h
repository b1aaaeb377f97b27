/* form.h: what came with a request. */
#ifndef IDEM_CLI_UI_FORM_H
#define IDEM_CLI_UI_FORM_H

#include <idem.h>

#define UI_TEXT_MAX 4096

/* A value that a person typed, or that one of our links has. */
struct ui_field {
    char text[UI_TEXT_MAX + 1]; /* With a NUL after len. */
    size_t len;
    bool too_long;
};

struct ui_form {
    struct ui_field decision; /* "complete", "fail", "release". */
    struct ui_field result;
    struct ui_field http; /* Its status, where it is an answer of HTTP. */
    struct ui_field type; /* Its content type. */
    struct ui_field reason;
    struct ui_field force; /* "yes": although the lease of its owner runs. */
    struct ui_field fence;
    struct ui_field token; /* Of who logs in. */
    struct ui_field scope; /* In hex, of links; as typed, of a search. */
    struct ui_field key;
};

/* The field that a form calls @name; NULL: none of ours. */
struct ui_field *ui_form_field(struct ui_form *form, const char *name);

/* Adds to it what came. */
void ui_field_add(struct ui_field *field, const char *bytes, size_t len);

/* Reads @field, which is hex, into @buf of @max bytes. */
bool ui_field_unhex(const struct ui_field *field, uint8_t *buf, size_t max,
                    size_t *ret_len);

/* Takes as long for a wrong text as for the right one. */
bool ui_same(const char *given, size_t len, const char *right);

#endif
