/* The key and the fingerprint of a message. */
#include "consume/consume.h"
#include "text/text.h"

#include <idem/http.h>
#include <idem/key.h>

static int make_key(const struct consume *consume,
                    const struct idem_message *message,
                    char key[IDEM_KEY_MAX + 1], struct idem_error *error)
{
    struct idem_slice text = message->id;

    if (consume->key != NULL) {
        struct idem_slice output;
        int rc = idem_select_run(consume->key, message->body, &output, error);

        if (rc != 0) {
            return rc;
        }
        text = idem_select_text(consume->key, output);
    }
    if (text.len == 0 || text.len > IDEM_KEY_MAX ||
        memchr(text.base, '\0', text.len) != NULL) {
        (void)snprintf(error->text, sizeof(error->text),
                       "it would be empty, longer than %d bytes, or have a "
                       "NUL in it",
                       IDEM_KEY_MAX);
        return IDEM_EINVALID;
    }
    memcpy(key, text.base, text.len);
    key[text.len] = '\0';
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
        rc = idem_select_run(consume->fingerprint, message->body, &values,
                             error);
        if (rc == 0) {
            rc = idem_http_fingerprint_selected(/* parts= */ NULL, 0, values,
                                                secret, digest);
        }
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
