/* The fields of a request's form. */
#include "text/text.h"
#include "ui/http_request.h"

struct ui_field *ui_form_field(struct ui_form *form, const char *name)
{
    const struct {
        const char *name;
        struct ui_field *field;
    } fields[] = {
        {"decision", &form->decision},
        {"result", &form->result},
        {"http", &form->http},
        {"type", &form->type},
        {"reason", &form->reason},
        {"fence", &form->fence},
        {"token", &form->token},
        {"s", &form->scope},
        {"k", &form->key},
        {"force", &form->force},
    };
    size_t i;

    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (strcmp(fields[i].name, name) == 0) {
            return fields[i].field;
        }
    }
    return NULL;
}

void ui_field_add(struct ui_field *field, const char *bytes, size_t len)
{
    if (len > UI_TEXT_MAX - field->len) {
        field->too_long = true;
        return;
    }
    memcpy(field->text + field->len, bytes, len);
    field->len += len;
    field->text[field->len] = '\0';
}

bool ui_field_unhex(const struct ui_field *field, uint8_t *buf, size_t max,
                    size_t *ret_len)
{
    return !field->too_long &&
           cli_unhex(idem_bytes(field->text, field->len), buf, max, ret_len);
}

bool ui_same(const char *given, size_t len, const char *right)
{
    size_t right_len = strlen(right);
    unsigned char differ = len != right_len;
    size_t i;

    for (i = 0; i < right_len; i++) {
        differ |= (unsigned char)(right[i] ^ (i < len ? given[i] : '\0'));
    }
    return differ == 0;
}
