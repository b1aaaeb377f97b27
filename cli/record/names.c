/* The records of a list, noted in a file without a name. */
#include "record/names.h"

#include "text/error.h"
#include "text/exit_status.h"

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

/* Written before the texts of each. */
struct head {
    uint64_t bytes;
    uint64_t fence;
    uint16_t owner_len;
    uint8_t scope_len;
    uint8_t key_len;
    uint8_t status;
    bool retry;
};

bool cli_names_add(struct cli_names *names, const struct idem_record *record)
{
    struct head head;

    memset(&head, 0, sizeof(head));
    head.bytes = record->result_len + record->input_len;
    head.fence = record->fence;
    head.owner_len =
        record->owner.len <= IDEM_OWNER_MAX ? (uint16_t)record->owner.len : 0;
    head.scope_len = (uint8_t)record->scope.len;
    head.key_len = (uint8_t)record->key.len;
    head.status = (uint8_t)record->status;
    head.retry = record->retry;
    (void)fwrite(&head, sizeof(head), 1, names->f);
    (void)fwrite(record->scope.base, 1, record->scope.len, names->f);
    (void)fwrite(record->key.base, 1, record->key.len, names->f);
    (void)fwrite(record->owner.base, 1, head.owner_len, names->f);
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

static bool next_text(struct cli_names *names, char *to, size_t len,
                      struct idem_slice *ret_text)
{
    *ret_text = idem_bytes(to, len);
    return fread(to, 1, len, names->f) == len;
}

bool cli_names_next(struct cli_names *names, struct cli_name *ret_name)
{
    char *key = ret_name->text + UINT8_MAX;
    struct head head;

    if (fread(&head, sizeof(head), 1, names->f) != 1 ||
        !next_text(names, ret_name->text, head.scope_len, &ret_name->scope) ||
        !next_text(names, key, head.key_len, &ret_name->key) ||
        !next_text(names, key + UINT8_MAX, head.owner_len, &ret_name->owner)) {
        return false;
    }
    ret_name->bytes = head.bytes;
    ret_name->fence = head.fence;
    ret_name->status = (enum idem_status)head.status;
    ret_name->retry = head.retry;
    return true;
}
