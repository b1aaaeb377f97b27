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
#include "record/record.h"

#include <stdio.h>

#define CLI_TRANSFER_VERSION 1

/* No line that we write is longer: two bodies of 64 MiB in base64, and a record
 * of which every byte is escaped. */
#define CLI_TRANSFER_LINE_MAX ((size_t)192 << 20)

/* Writes the header, of @move where that is not NULL, the line of @record, or the last
 * line after @count records, to @f. 0, or an exit status after an error message; ferror() of
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

/* ---- The records of a store, as lines to a file ---- */

struct cli_exporting {
    struct idem_store *store;
    const char *url; /* As it was given. */
    FILE *out;
    unsigned statuses; /* Of these only; 0: all. */
    const char *scope; /* Of it only; NULL: all. */

    /* To be moved: nothing begins in the store any more. */
    bool moves;
    const char *place; /* Where to, for the sentence; or NULL. */
    int64_t wait_ms;   /* For what is in progress. */

    /* The answer. */
    uint64_t exported;
    uint64_t corrupt; /* Left out. */
    uint64_t unknown; /* Of a move: were still in progress. */

    /* Its own. */
    struct idem_move move;
    struct cli_names open; /* In progress when they were read. */
};

/* Writes header, records and, of a move, the last line. 0, or an exit status after
 * an error message. The stream is whole where that is 0; but for records that cannot
 * be trusted where it is CLI_CORRUPT. */
int cli_exporting(struct cli_exporting *e);

/* ---- The records of a store that were noted by name, read in batches ---- */

/* Called for each record that is still there. With @code IDEM_ECORRUPT it cannot be
 * trusted, and only @record's scope and key are set. 0, or an exit status. */
typedef int cli_read_fn(void *ctx, int code, const struct idem_record *record);

/* Reads all of @names, and shows progress as @doing. 0, or an exit status after an
 * error message it went no further. */
int cli_read_named(struct idem_store *store, struct cli_names *names,
                   const char *doing, cli_read_fn *each, void *ctx);

/* Idem import of a store that is moved: the store that it comes to.
 *
 * Nothing begins there before all of it has come in. */

struct cli_arrival {
    struct idem_store *store;
    struct idem_move mark; /* Of the store, as it is. */
    bool is_here;          /* All of it came in before: nothing is added. */
    bool has_end;          /* The last line was read: */
    uint64_t count;        /* what it says. */
    uint64_t records;      /* That were read. */
    uint64_t fence_floor;  /* Above all fences that were read. */
    int64_t store_ms;
    uint64_t others; /* Records of other attempts that are there, by fence. */
};

/* Marks @store as being filled by the move @id, unless it is already. 0, or an exit
 * status after an error message: it is in use, say. */
int cli_arrive(struct cli_arrival *arrival, struct idem_store *store,
               const uint8_t id[16]);

/* @record was not added: the same is there, or another state of the same attempt,
 * which is told and stays, or another attempt, which is counted. 0, or an exit status. */
int cli_arrive_kept(struct cli_arrival *arrival,
                    const struct idem_record *record);

/* All was read, of which @refused lines could not be taken: opens the store if nothing
 * is missing. 0, or an exit status after saying what is. */
int cli_arrive_end(struct cli_arrival *arrival, uint64_t refused);

/* ---- Idem export --open: the store that is left for another one ---- */

/* Marks @store as moved to @place (NULL: unsaid). It may be marked so already: then it
 * is the same move. 0, or an exit status after an error message. */
int cli_leave(struct idem_store *store, const char *place,
              struct idem_move *ret_move);

/* Waits until nobody begins anything there, who may not have heard of it. */
void cli_leave_settle(const struct idem_move *move);

/* Reads the mark, fences and time of @store. 0, or an exit status. */
int cli_leave_read(struct idem_store *store, struct idem_move *ret_move);

/* Waits until it has to be looked again at what is in progress: longer each time, and
 * until @until_ms of cli_mono_ms() at most. False: that is over. */
bool cli_leave_wait(int64_t until_ms, unsigned nth, uint64_t open);

/* @found as it comes to the other store: with another nonce, so that a token that is good
 * here is good for nothing there; and unknown if it is in progress, for nobody there
 * will hear how it ends. *@ret_record points into @found, and is valid until the next
 * call. 0, or an exit status. */
int cli_leave_cut(struct idem_store *store, const struct idem_record *found,
                  struct idem_record *ret_record);

#endif
