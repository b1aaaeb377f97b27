/* transfer.h: a store as lines of JSON, to copy or move it elsewhere.
 *
 * The first line is a header: {"idem_export":1,"exported_ms":...,"store":...}.
 * Every other line is a record: what `idem show --json` prints of it, for people and
 * filters, and the stored bytes in base64:
 *
 *     head    as it is stored, with its checksum; idem__record_encode()
 *     result  its bytes, if there are any
 *     input   its bytes, if there are any
 *
 * An import trusts the head, and refuses a line whose other members contradict it.
 *
 * In a move the header has "move", its id in hex, and the last line is
 * {"idem_export_end":COUNT,"fence_floor":...,"store_ms":...}.
 */
#ifndef IDEM_CLI_UPKEEP_TRANSFER_H
#define IDEM_CLI_UPKEEP_TRANSFER_H

#include "contract/move.h"
#include "contract/store.h"
#include "record/record.h"

#include <stdio.h>

#define CLI_TRANSFER_VERSION 1

/* The longest line that an export has: two bodies of 64 MiB in base64, and a record of
 * which every byte is escaped. */
#define CLI_TRANSFER_LINE_MAX ((size_t)192 << 20)

/* Write to @f the header (@move may be NULL), the line of @record, and the last line
 * after @count records. 0, or an exit status after an error message; the caller checks
 * ferror(). */
int cli_transfer_header(FILE *f, const char *store_url,
                        const struct idem_move *move);
int cli_transfer_write(FILE *f, const struct idem_record *record);
int cli_transfer_end(FILE *f, uint64_t count, const struct idem_move *move);

enum cli_transfer_kind {
    CLI_TRANSFER_RECORD,
    CLI_TRANSFER_HEADER, /* version is set; in a move also moves and move.id. */
    CLI_TRANSFER_END, /* count, move.fence_floor and move.store_ms are set. */
    CLI_TRANSFER_BAD, /* why is set. */
    CLI_TRANSFER_NOMEM,
};

/* One line of an export. */
struct cli_transfer {
    struct idem_record record; /* Its slices point into the buffers below. */
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

/* ---- The records of a store, as lines to a file ---- */

struct cli_exporting {
    struct idem_store *store;
    const char *url; /* As it was given. */
    FILE *out;
    unsigned statuses; /* Only these; 0: all. */
    const char *scope; /* Only this one; NULL: all. */

    bool moves;        /* Nothing begins in the store any more. */
    const char *place; /* Its new place, for messages; or NULL. */
    int64_t wait_ms;   /* How long to wait for work in progress. */

    /* The result. */
    uint64_t exported;
    uint64_t corrupt; /* Records left out. */
    uint64_t unknown; /* In a move: still in progress at the end. */

    /* Private. */
    struct idem_move move;
    struct cli_names open; /* In progress when they were read. */
};

/* Writes the header, the records and, in a move, the last line. 0; CLI_CORRUPT if it left
 * out records that cannot be trusted; or another exit status, after an error message: the
 * stream is incomplete. */
int cli_exporting(struct cli_exporting *e);

/* ---- Records that were noted by name, read in batches ---- */

/* Called for each record that still exists. With @code IDEM_ECORRUPT it cannot be
 * trusted, and only @record's scope and key are set. 0, or an exit status. */
typedef int cli_read_fn(void *ctx, int code, const struct idem_record *record);

/* Reads all of @names, and shows progress as @doing. 0, or an exit status after an error
 * message: it stopped there. */
int cli_read_named(struct idem_store *store, struct cli_names *names,
                   const char *doing, cli_read_fn *each, void *ctx);

/* The store that idem import fills in a move: nothing begins in it before all records
 * have arrived. */

struct cli_arrival {
    struct idem_store *store;
    struct idem_move mark; /* The store's current mark. */
    bool is_here;          /* An earlier import completed this move. */
    bool has_end;          /* The last line was read; these two are from it: */
    uint64_t count;
    int64_t store_ms;
    uint64_t records;     /* Read so far. */
    uint64_t fence_floor; /* At least the highest fence that was read. */
    uint64_t others;      /* Records here that belong to other attempts. */
};

/* Marks @store as being filled by the move @id, unless it is already. 0, or an exit
 * status after an error message, for example because the store is in use. */
int cli_arrive(struct cli_arrival *arrival, struct idem_store *store,
               const uint8_t id[16]);

/* Finds out why @record was not added: the store has the same one; another state of the
 * same attempt, which is reported and stays; or another attempt, which is counted. 0, or
 * an exit status. */
int cli_arrive_kept(struct cli_arrival *arrival,
                    const struct idem_record *record);

/* Opens the store for use if no record is missing; @refused lines could not be imported.
 * 0, or an exit status after a message that says what is missing. */
int cli_arrive_end(struct cli_arrival *arrival, uint64_t refused);

#endif
