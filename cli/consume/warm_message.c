/* The line of JSON for a message. */
#include "consume/warm.h"
#include "text/json.h"

#include <stdlib.h>

static void add_attributes(struct cli_json *json,
                           const struct warm_message *message)
{
    struct cli_json own;

    cli_json_init(&own);
    cli_json_count(&own, "receives", message->receives);
    if (message->group.len > 0) {
        cli_json_bytes(&own, "group", message->group);
    }
    cli_json_object(json, "attributes", &own);
}

static void fill(struct cli_json *json, const struct warm_message *message,
                 const struct idem_attempt *attempt, const char *token)
{
    cli_json_bytes(json, "id", message->id);
    cli_json_bytes(json, "key", attempt->record->key);
    cli_json_bytes(json, "scope", attempt->record->scope);
    cli_json_count(json, "fence", attempt->fence);
    cli_json_count(json, "attempt", attempt->attempts);
    cli_json_bool(json, "takeover", attempt->takeover);
    cli_json_text(json, "token", token);
    add_attributes(json, message);
    cli_json_bytes(json, "body", message->body);
}

char *warm_message_line(const struct warm_message *message,
                        const struct idem_attempt *attempt, const char *token,
                        size_t *ret_len)
{
    struct cli_json json;
    const char *text = NULL;
    char *line = NULL;

    cli_json_init(&json);
    fill(&json, message, attempt, token);
    if (!json.failed) {
        text = json_object_to_json_string_length(
            json.object,
            JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, ret_len);
    }
    line = text != NULL ? malloc(*ret_len + 2) : NULL;
    if (line != NULL) {
        memcpy(line, text, *ret_len);
        line[(*ret_len)++] = '\n';
        line[*ret_len] = '\0';
    }
    cli_json_finish(&json);
    return line;
}
