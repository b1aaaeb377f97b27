/* The records of a list, noted in a file without a name. */
#include "names.h"

#include "cli.h"

#include <errno.h>

int cli_names_open(struct cli_names *names)
{
    names->len = 0;
    names->f = tmpfile();
    if (names->f == NULL) {
        cli_say("cannot make a temporary file: %s", strerror(errno));
        return CLI_OUTPUT_FAILED;
    }
    return 0;
}

void cli_names_close(struct cli_names *names)
{
    if (names->f != NULL) {
        (void)fclose(names->f);
        names->f = NULL;
    }
}

bool cli_names_add(struct cli_names *names, const struct idem_record *record)
{
    uint8_t lens[2] = {(uint8_t)record->scope.len, (uint8_t)record->key.len};
    uint64_t bytes = record->result_len + record->input_len;

    (void)fwrite(lens, 1, sizeof(lens), names->f);
    (void)fwrite(&bytes, sizeof(bytes), 1, names->f);
    (void)fwrite(record->scope.base, 1, record->scope.len, names->f);
    (void)fwrite(record->key.base, 1, record->key.len, names->f);
    names->len++;
    return ferror(names->f) == 0;
}

int cli_names_rewind(struct cli_names *names)
{
    if (fflush(names->f) != 0 || ferror(names->f)) {
        cli_say("cannot note the keys in a temporary file: %s",
                strerror(errno));
        return CLI_OUTPUT_FAILED;
    }
    rewind(names->f);
    return 0;
}

bool cli_names_next(struct cli_names *names, struct cli_name *ret_name)
{
    char *key = ret_name->text + UINT8_MAX;
    uint8_t lens[2];

    if (fread(lens, 1, sizeof(lens), names->f) != sizeof(lens) ||
        fread(&ret_name->bytes, sizeof(ret_name->bytes), 1, names->f) != 1 ||
        fread(ret_name->text, 1, lens[0], names->f) != lens[0] ||
        fread(key, 1, lens[1], names->f) != lens[1]) {
        return false;
    }
    ret_name->scope = idem_bytes(ret_name->text, lens[0]);
    ret_name->key = idem_bytes(key, lens[1]);
    return true;
}
