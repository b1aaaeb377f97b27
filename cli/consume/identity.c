/* The key and the fingerprint of a message. */
#include "consume/consume.h"
#include "text/text.h"

#include <idem/http.h>
#include <idem/key.h>

/* Says which selector failed. */
static int refuse(const char *option, const char *text,
                  struct idem_error *error)
{
    struct idem_error why = *error;
    char shown[96];

    (void)snprintf(error->text, sizeof(error->text), "--%s %s: %.*s", option,
                   cli_escape(idem_str(text), shown, sizeof(shown)),
                   (int)sizeof(why.text) / 2, why.text);
    return error->code;
}

/* The id of a message is a name that the queue gave it. */
static int take_id(struct idem_slice id, char key[IDEM_KEY_MAX + 1],
                   struct idem_error *error)
{
    if (id.len == 0 || id.len > IDEM_KEY_MAX ||
        memchr(id.base, '\0', id.len) != NULL) {
        (void)snprintf(error->text, sizeof(error->text),
                       "its id is empty, longer than %d bytes, or has a NUL in "
                       "it",
                       IDEM_KEY_MAX);
        return IDEM_EINVALID;
    }
    memcpy(key, id.base, id.len);
    key[id.len] = '\0';
    return 0;
}

static int make_key(const struct consume *consume,
                    const struct idem_message *message,
                    char key[IDEM_KEY_MAX + 1], struct idem_error *error)
{
    struct idem_key_text made;
    int rc;

    if (consume->key == NULL) {
        return take_id(message->id, key, error);
    }
    rc = idem_selector_run(consume->key, message->body, /* flags= */ 0, error);
    if (rc == 0) {
        rc = idem_key_of(consume->key, &made, error);
    }
    if (rc != 0) {
        return refuse("key-from", consume->options->key_from, error);
    }
    memcpy(key, made.text, made.len + 1);
    return 0;
}

/* So that another message with the same key is not taken for a duplicate. */
static int make_fingerprint(const struct consume *consume,
                            const struct idem_message *message,
                            char fingerprint[CONSUME_FINGERPRINT_MAX],
                            struct idem_error *error)
{
    uint8_t digest[IDEM_FINGERPRINT_LEN];
    const struct idem_slice secret = idem_str(NULL);
    struct idem_slice values;
    int rc = 0;

    if (consume->options->fingerprint == CONSUME_NO_FINGERPRINT) {
        (void)strcpy(fingerprint, "none");
        return 0;
    }
    if (consume->fingerprint == NULL) {
        rc = idem_http_fingerprint(/* parts= */ NULL, 0,
                                   /* content_type= */ idem_str(NULL),
                                   message->body, secret, digest);
    } else {
        rc = idem_selector_run(consume->fingerprint, message->body,
                               /* flags= */ 0, error);
        if (rc == 0) {
            rc = idem_selector_values(consume->fingerprint, &values, error);
        }
        if (rc != 0) {
            return refuse("fingerprint-from",
                          consume->options->fingerprint_from, error);
        }
        rc = idem_http_fingerprint_selected(/* parts= */ NULL, 0, values,
                                            secret, digest);
    }
    if (rc == 0) {
        cli_hex(idem_bytes(digest, sizeof(digest)), fingerprint);
    }
    return rc;
}

int consume_identify(const struct consume *consume,
                     const struct idem_message *message,
                     struct consume_identity *ret_identity,
                     struct idem_error *ret_error)
{
    int rc = make_key(consume, message, ret_identity->key, ret_error);

    return rc != 0 ? rc
                   : make_fingerprint(consume, message,
                                      ret_identity->fingerprint, ret_error);
}
