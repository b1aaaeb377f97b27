/* Classifies the refusals of AWS services. */
#include "aws/client/error.h"

#include "aws/client/json.h"
#include "core/error.h"

#define BODY_MAX ((size_t)16 << 20)
#define DEPTH_MAX 32

/* Names that mean the same in every service. */
static const struct {
    const char *type;
    enum idem__aws_meaning meaning;
} meanings[] = {
    {"BandwidthLimitExceeded", IDEM__AWS_THROTTLED},
    {"LimitExceededException", IDEM__AWS_THROTTLED},
    {"PriorRequestNotComplete", IDEM__AWS_THROTTLED},
    {"ProvisionedThroughputExceededException", IDEM__AWS_THROTTLED},
    {"RequestLimitExceeded", IDEM__AWS_THROTTLED},
    {"RequestThrottled", IDEM__AWS_THROTTLED},
    {"RequestThrottledException", IDEM__AWS_THROTTLED},
    {"SlowDown", IDEM__AWS_THROTTLED},
    {"ThrottledException", IDEM__AWS_THROTTLED},
    {"Throttling", IDEM__AWS_THROTTLED},
    {"ThrottlingException", IDEM__AWS_THROTTLED},
    {"TooManyRequestsException", IDEM__AWS_THROTTLED},

    {"RequestExpired", IDEM__AWS_SKEWED},
    {"RequestInTheFuture", IDEM__AWS_SKEWED},
    {"RequestTimeTooSkewed", IDEM__AWS_SKEWED},

    {"ExpiredToken", IDEM__AWS_EXPIRED},
    {"ExpiredTokenException", IDEM__AWS_EXPIRED},
    {"TokenRefreshRequired", IDEM__AWS_EXPIRED},

    {"AccessDenied", IDEM__AWS_DENIED},
    {"AccessDeniedException", IDEM__AWS_DENIED},
    {"IncompleteSignature", IDEM__AWS_DENIED},
    {"IncompleteSignatureException", IDEM__AWS_DENIED},
    {"InvalidAccessKeyId", IDEM__AWS_DENIED},
    {"InvalidClientTokenId", IDEM__AWS_DENIED},
    {"InvalidSignatureException", IDEM__AWS_DENIED},
    {"MissingAuthenticationToken", IDEM__AWS_DENIED},
    {"MissingAuthenticationTokenException", IDEM__AWS_DENIED},
    {"NotAuthorized", IDEM__AWS_DENIED},
    {"OptInRequired", IDEM__AWS_DENIED},
    {"SignatureDoesNotMatch", IDEM__AWS_DENIED},
    {"UnrecognizedClientException", IDEM__AWS_DENIED},

    {"InvalidAction", IDEM__AWS_CONFIG},
    {"ResourceNotFoundException", IDEM__AWS_CONFIG},
    {"SerializationException", IDEM__AWS_CONFIG},
    {"UnknownOperationException", IDEM__AWS_CONFIG},
    {"ValidationError", IDEM__AWS_CONFIG},
    {"ValidationException", IDEM__AWS_CONFIG},
};

/* ---- Texts ------------------------------------------------------------- */

static bool is_name(struct idem_slice text)
{
    const char *p = text.base;
    size_t i;

    for (i = 0; i < text.len; i++) {
        if ((p[i] < 'a' || p[i] > 'z') && (p[i] < 'A' || p[i] > 'Z') &&
            (p[i] < '0' || p[i] > '9') && memchr("._-", p[i], 3) == NULL) {
            return false;
        }
    }
    return text.len > 0;
}

/* Sets the type to Name of "prefix#Name:anything"; leaves it if that is not a name. */
static void set_type(struct idem__aws_error *error, struct idem_slice text)
{
    const char *p = text.base;
    const char *end, *hash, *colon;
    struct idem_slice name;

    if (text.len == 0) {
        return;
    }
    end = p + text.len;
    while ((hash = memchr(p, '#', (size_t)(end - p))) != NULL) {
        p = hash + 1;
    }
    colon = memchr(p, ':', (size_t)(end - p));
    name = idem_bytes(p, (size_t)((colon == NULL ? end : colon) - p));
    if (name.len < sizeof(error->type) && is_name(name)) {
        memcpy(error->type, name.base, name.len);
        error->type[name.len] = '\0';
    }
}

static void set_message(struct idem__aws_error *error, struct idem_slice text)
{
    const char *p = text.base;
    size_t len = text.len;
    size_t i;

    if (len >= sizeof(error->message)) {
        len = sizeof(error->message) - 1;
        /* Do not cut a character in half: in UTF-8 its later bytes are 10xxxxxx. */
        while (len > 0 && ((unsigned char)p[len] & 0xc0) == 0x80) {
            len--;
        }
    }
    for (i = 0; i < len; i++) {
        unsigned char c = (unsigned char)p[i];

        error->message[i] = (char)(c < ' ' || c == 0x7f ? ' ' : c);
    }
    error->message[len] = '\0';
}

/* Returns the first of two members that is a string; len 0: neither is. */
static struct idem_slice text_of(struct json_object *body, const char *name,
                                 const char *other_name)
{
    struct idem_slice text = idem__json_text_of(body, name);

    return text.base != NULL ? text : idem__json_text_of(body, other_name);
}

/* ---- Meaning ----------------------------------------------------------- */

/* True if the signature was refused for its time. DynamoDB names that as an invalid
 * signature, and tells the reason only in the message. */
static bool is_about_time(const struct idem__aws_error *error)
{
    return (idem__aws_error_is(error, "InvalidSignatureException") ||
            idem__aws_error_is(error, "SignatureDoesNotMatch")) &&
           (strstr(error->message, "Signature expired") != NULL ||
            strstr(error->message, "Signature not yet current") != NULL);
}

static enum idem__aws_meaning meaning_of(int status,
                                         const struct idem__aws_error *error)
{
    size_t i;

    if (status == 200) {
        return IDEM__AWS_SUCCESS;
    }
    if (status >= 500 && status <= 599) {
        return IDEM__AWS_SERVER;
    }
    if (status < 400 || status > 499) {
        return IDEM__AWS_UNCLEAR;
    }
    if (is_about_time(error)) {
        return IDEM__AWS_SKEWED;
    }
    for (i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
        if (idem__aws_error_is(error, meanings[i].type)) {
            return meanings[i].meaning;
        }
    }
    return IDEM__AWS_UNCLEAR;
}

void idem__aws_error_read(int status, const char *header,
                          struct json_object *body,
                          struct idem__aws_error *ret_error)
{
    struct idem__aws_error error = {.type = "", .message = ""};

    set_type(&error, idem_str(header));
    if (status != 200 && json_object_is_type(body, json_type_object)) {
        set_type(&error, text_of(body, "__type", "code"));
        set_message(&error, text_of(body, "message", "Message"));
    }
    error.meaning = meaning_of(status, &error);
    *ret_error = error;
}

void idem__aws_error_parse(int status, const char *header,
                           struct idem_slice body,
                           struct idem__aws_error *ret_error)
{
    struct json_object *value = NULL;

    if (status != 200) {
        value = idem__aws_json(body, json_type_object, DEPTH_MAX, BODY_MAX,
                               /* ret_code= */ NULL);
    }

    idem__aws_error_read(status, header, value, ret_error);
    (void)json_object_put(value);
}

/* True if @text contains @word. Most of a long answer is base64, in which the first letter
 * of @word is rare, so memchr() skips far. */
static bool contains(struct idem_slice text, const char *word)
{
    const char *p = text.base;
    size_t left = text.len;
    size_t len = strlen(word);

    while (left >= len) {
        const char *at = memchr(p, word[0], left - len + 1);

        if (at == NULL) {
            return false;
        }
        if (memcmp(at, word, len) == 0) {
            return true;
        }
        left -= (size_t)(at + 1 - p);
        p = at + 1;
    }
    return false;
}

bool idem__aws_error_may_be_stale(const char *header, struct idem_slice body)
{
    /* Parts of all names and messages of the two meanings; and the start of an escape,
     * which could stand for any letter of one. */
    static const char *const words[] = {"xpired",  "Skewed",  "InTheFuture",
                                        "not yet", "Refresh", "\\u"};
    struct idem_slice type = idem_str(header == NULL ? "" : header);
    size_t i;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (contains(type, words[i]) || contains(body, words[i])) {
            return true;
        }
    }
    return false;
}

bool idem__aws_error_is(const struct idem__aws_error *error, const char *type)
{
    return strcmp(error->type, type) == 0;
}

const struct idem__aws_name *idem__aws_error_find(
    const struct idem__aws_error *error, const struct idem__aws_name *names,
    size_t n)
{
    size_t i;

    for (i = 0; i < n && error->meaning != IDEM__AWS_SERVER; i++) {
        if (idem__aws_error_is(error, names[i].type)) {
            return &names[i];
        }
    }
    return NULL;
}

static int code_of(enum idem__aws_meaning meaning)
{
    switch (meaning) {
    case IDEM__AWS_SUCCESS:
        return 0;
    case IDEM__AWS_EXPIRED:
    case IDEM__AWS_DENIED:
        return IDEM_EDENIED;
    case IDEM__AWS_CONFIG:
        return IDEM_ECONFIG;
    default:
        return IDEM_EUNAVAILABLE;
    }
}

int idem__aws_error_say(const struct idem__aws_error *error,
                        const struct idem__aws_name *name, const char *who,
                        int status, struct idem_error *ret_error)
{
    int code = name != NULL ? name->code : code_of(error->meaning);

    return code == 0
               ? 0
               : idem__error(ret_error, code, "%s answered %d%s%s%s%.120s", who,
                             status, error->type[0] != '\0' ? " " : "",
                             error->type, error->message[0] != '\0' ? ": " : "",
                             error->message);
}
