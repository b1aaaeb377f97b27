/* The key that another library makes of an event. */
#include "verbs/flavour.h"

#include "options/command.h"
#include "options/read.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/text.h"

#include <idem/key.h>
#include <stdlib.h>

#define EVENT_MAX ((size_t)16 * 1024 * 1024)

const char *const cli_flavours[] = {
#define IDEM__X(id, word) word,
    IDEM_FLAVOUR_MAP(IDEM__X)
#undef IDEM__X
        NULL,
};

/* A function's own name is before the "#" in TypeScript, and nothing else. */
static int find_prefix(const struct cli_command *command,
                       const struct cli_flavour *flavour,
                       enum idem_flavour which, const char **ret_prefix)
{
    *ret_prefix = flavour->prefix;
    if (*ret_prefix == NULL && which == IDEM_FLAVOUR_TYPESCRIPT) {
        *ret_prefix = getenv("AWS_LAMBDA_FUNCTION_NAME");
    }
    if (*ret_prefix != NULL) {
        return 0;
    }
    return cli_usage(
        command,
        "no prefix given, the part before the # of the key: --prefix %s",
        which == IDEM_FLAVOUR_PYTHON ? "FUNCTION.module.qualname" : "FUNCTION");
}

static int print(const struct cli_flavour *flavour, enum idem_flavour which,
                 const struct idem_key_text *key)
{
    struct idem_slice text = {key->text, key->len};
    struct cli_json json;
    int status;

    if (!flavour->json) {
        cli_print_escaped(stdout, text);
        (void)putchar('\n');
        return CLI_OK;
    }
    cli_json_init(&json);
    cli_json_text(&json, "flavour", idem_flavour_name(which));
    cli_json_bytes(&json, "key", text);
    status = cli_json_print(&json);
    cli_json_finish(&json);
    return status;
}

/* A fault of an event is a fault of the input. */
static int fail(const struct idem_error *error)
{
    if (error->code != IDEM_EINVALID) {
        return cli_fail_with(error);
    }
    cli_say("%s", error->text);
    return CLI_USAGE;
}

/* Selects from @event and prints the key of that. */
static int print_key(const struct cli_flavour *flavour, enum idem_flavour which,
                     const char *prefix, struct idem_slice event)
{
    unsigned flags = flavour->allow_null ? IDEM_FLAVOUR_NULL : 0;
    struct idem_selector *selector = NULL;
    struct idem_key_text key;
    struct idem_error error;
    int rc = 0;

    if (flavour->select == NULL) {
        rc = idem_flavour_key(which, prefix, event, flags, &key, &error);
    } else {
        rc = idem_selector_create(flavour->select, &selector, &error);
        if (rc == 0) {
            rc = idem_selector_run(selector, event, /* flags= */ 0, &error);
        }
        if (rc == 0) {
            rc = idem_flavour_key_of(which, prefix, selector, flags, &key,
                                     &error);
        }
    }
    idem_selector_destroy(selector);
    return rc == 0 ? print(flavour, which, &key) : fail(&error);
}

int cli_flavour_print(const struct cli_command *command,
                      const struct cli_flavour *flavour, int argc, char **argv)
{
    enum idem_flavour which = idem_flavour_find(cli_flavours[flavour->choice]);
    const char *prefix = NULL;
    char *event;
    size_t len;
    int status;

    if (argc != 1) {
        return cli_usage(command,
                         "one event is needed: @FILE, or - for standard input");
    }
    status = find_prefix(command, flavour, which, &prefix);
    if (status == 0) {
        status = cli_read_arg("flavour", argv[0], /* text_ok= */ false,
                              EVENT_MAX, &event, &len);
    }
    if (status != 0) {
        return status;
    }
    status = print_key(flavour, which, prefix, idem_bytes(event, len));
    free(event);
    return status;
}
