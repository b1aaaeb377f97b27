/* transfer.h: a store as lines of JSON, to take it somewhere else.
 *
 * The first line is a header: {"idem_export":1,"exported_ms":...,"store":...}.
 * Every other line is a record: what `idem show --json` says of it, for people
 * and for filters, and what it really is, all in base64:
 *
 *     head    as it is stored, with its checksum; idem__record_encode()
 *     result  its bytes, if there are any
 *     input   likewise
 *
 * The head decides. The other members of a line must not contradict it.
 *
 * Of a store that is moved the header has "move", the id of that in hex, and after all
 * records comes {"idem_export_end":COUNT,"fence_floor":...,"store_ms":...}.
 */
#ifndef IDEM_CLI_UPKEEP_TRANSFER_H
#define IDEM_CLI_UPKEEP_TRANSFER_H

#include "contract/move.h"
#include "contract/store.h"

#include <stdio.h>

#define CLI_TRANSFER_VERSION 1

/* No line that we write is longer: two bodies of 64 MiB in base64, and a record
 * of which every byte is escaped. */
#define CLI_TRANSFER_LINE_MAX ((size_t)192 << 20)

/* Writes the header, of @move where that is not NULL, the line of @record, or the last
 * line after @count records, to @f. 0, or an exit status after saying why; ferror() of
 * @f is the caller's to look at. */
int cli_transfer_header(FILE *f, const char *store_url,
                        const struct idem_move *move);
int cli_transfer_write(FILE *f, const struct idem_record *record);
int cli_transfer_end(FILE *f, uint64_t count, const struct idem_move *move);

enum cli_transfer_kind {
    CLI_TRANSFER_RECORD,
    CLI_TRANSFER_HEADER, /* version and, of a move, moves and move.id are set. */
    CLI_TRANSFER_END, /* count, move.fence_floor and move.store_ms are set. */
    CLI_TRANSFER_BAD, /* why is set. */
    CLI_TRANSFER_NOMEM,
};

/* A line that was read. */
struct cli_transfer {
    struct idem_record record; /* Its slices point to what is below. */
    int64_t version;
    bool moves;
    struct idem_move move;
    uint64_t count;
    char why[256];
    char scope[IDEM_SCOPE_MAX];
    char key[IDEM_KEY_MAX];
    uint8_t head[IDEM_HEAD_MAX];
    uint8_t *result;
    uint8_t *input;
};

/* Reads and verifies one line. The caller finishes @transfer. */
enum cli_transfer_kind cli_transfer_read(struct idem_slice line,
                                         struct cli_transfer *transfer);
void cli_transfer_finish(struct cli_transfer *transfer);

#endif
