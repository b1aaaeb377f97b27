/* Prints the commands of the program and their options as JSON, for the completions
 * that are made at build time. It is not installed. */
#include "commands.h"
#include "options/command.h"
#include "record/record.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

static void add_text(struct json_object *to, const char *name, const char *text)
{
    (void)json_object_object_add(to, name, json_object_new_string(text));
}

/* Nothing where @words is NULL. */
static void add_words(struct json_object *to, const char *name,
                      const char *const *words)
{
    struct json_object *list;

    if (words == NULL) {
        return;
    }
    list = json_object_new_array();
    for (; *words != NULL; words++) {
        (void)json_object_array_add(list, json_object_new_string(*words));
    }
    (void)json_object_object_add(to, name, list);
}

/* "arg" is there where the option takes a value, "letter" where it has one. */
static struct json_object *option_of(const struct cli_option *option)
{
    struct json_object *to = json_object_new_object();

    add_text(to, "name", option->name);
    add_text(to, "help", option->help);
    if (option->letter != 0) {
        add_text(to, "letter", (const char[]){option->letter, '\0'});
    }
    if (option->kind != CLI_FLAG) {
        add_text(to, "arg", option->arg);
    }
    add_words(to, "choices",
              option->as != NULL ? option->as->words : option->choices);
    return to;
}

static struct json_object *command_of(const struct cli_command *command)
{
    struct json_object *to = json_object_new_object();
    struct json_object *list = json_object_new_array();
    const struct cli_option *o;

    add_text(to, "name", command->name);
    add_text(to, "summary", command->summary);
    (void)json_object_object_add(to, "takes_key",
                                 json_object_new_boolean(command->takes_key));
    add_words(to, "operands", command->operands);
    for (o = command->options; o->name != NULL; o++) {
        (void)json_object_array_add(list, option_of(o));
    }
    (void)json_object_object_add(to, "options", list);
    return to;
}

/* The names of --fields and --status: no option's choices, as several of them may
 * follow it. */
static void add_lists(struct json_object *to)
{
    static const enum idem_status statuses[] = {
        IDEM_STATUS_IN_PROGRESS, IDEM_STATUS_COMPLETED, IDEM_STATUS_FAILED,
        IDEM_STATUS_UNKNOWN,     IDEM_STATUS_RELEASED,  IDEM_STATUS_RETRY};
    const char *names[sizeof(statuses) / sizeof(statuses[0]) + 1] = {NULL};
    char *fields;
    size_t len;
    FILE *f = open_memstream(&fields, &len);
    size_t i;

    if (f == NULL) {
        abort();
    }
    cli_fields_print_names(f, " ");
    (void)fclose(f);
    add_text(to, "fields", fields);
    free(fields);
    for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        names[i] = idem_status_name(statuses[i]);
    }
    add_words(to, "statuses", names);
}

int main(void)
{
    struct json_object *table = json_object_new_object();
    struct json_object *list = json_object_new_array();
    size_t i;

    for (i = 0; cli_all_commands[i] != NULL; i++) {
        (void)json_object_array_add(list, command_of(cli_all_commands[i]));
    }
    (void)json_object_object_add(table, "commands", list);
    add_lists(table);
    (void)puts(json_object_to_json_string(table));
    (void)json_object_put(table);
    return ferror(stdout) != 0 || fclose(stdout) != 0;
}
