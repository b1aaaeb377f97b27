/* Reads and writes the mark of a store that is moved, and tells which ops a store with
 * this mark refuses. Pure.
 *
 *     ""                              never moved
 *     left HEX MS PLACE               HEX: the move; MS: when it was marked
 *     filling HEX MS
 *     here HEX MS
 *
 * The mark is text, so that a person can read it with sqlite3, psql or the console of
 * AWS. */
#ifndef IDEM_CORE_MOVE_H
#define IDEM_CORE_MOVE_H

#include "contract/move.h"
#include "contract/store.h"

/* Writes @move as a mark. IDEM_EINVALID: its state, id, place or time is not valid. */
int idem__move_write(const struct idem_move *move,
                     char ret_mark[IDEM_MARK_MAX]);

/* Parses @mark into state, id, place and marked_ms. IDEM_ECORRUPT: it is not a mark. */
int idem__move_read(struct idem_slice mark, struct idem_move *ret_move);

/* Copies @text, the mark that a store has read again, to @mark, which is zeroed or was
 * loaded before. A text that is not a mark becomes one that closes the store. */
void idem__move_load(struct idem_slice text, char mark[IDEM_MARK_MAX]);

/* True if a store with @mark (NULL: none) refuses @op; the reason is put in @text. @mark
 * must be valid, or come from idem__move_load(). */
bool idem__move_refuses(const char *mark, const struct idem_op *op, char *text,
                        size_t cap);

/* True if a store with @mark, as above, refuses any ops. */
bool idem__move_closes(struct idem_slice mark);

/* Answers the IDEM_OP_MOVE @op with @mark, which the store has now, and with the fence
 * floor and the time of @now. If @op was to set another mark than @mark, another process
 * was faster, and @op fails with IDEM_ELOST. */
void idem__move_answer(struct idem_op *op, const char *mark,
                       const struct idem_now *now);

/* Runs the IDEM_OP_MOVE @op on the @mark that the store has loaded. True: @mark was
 * replaced, and the caller saves it and raises the fence floor and the time. */
bool idem__move_run(struct idem_op *op, char mark[IDEM_MARK_MAX],
                    const struct idem_now *now);

#endif
