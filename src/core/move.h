/* The mark of a store that is moved: its state as text, and what it refuses. Pure.
 *
 *     ""                              never moved
 *     left HEX MS PLACE               HEX: the move; MS: when it was marked
 *     filling HEX MS
 *     here HEX MS
 *
 * People see it with sqlite3, psql or the console of AWS. */
#ifndef IDEM_CORE_MOVE_H
#define IDEM_CORE_MOVE_H

#include "contract/move.h"
#include "contract/store.h"

/* IDEM_EINVALID: no mark says that. */
int idem__move_write(const struct idem_move *move,
                     char ret_mark[IDEM_MARK_MAX]);

/* Sets state, id, place and marked_ms. IDEM_ECORRUPT: @mark is not one. */
int idem__move_read(struct idem_slice mark, struct idem_move *ret_move);

/* True if @op is refused under @mark (NULL: none), whose sentence is put in @text. */
bool idem__move_refuses(const char *mark, const struct idem_op *op, char *text,
                        size_t cap);

/* Does it refuse anything? */
bool idem__move_closes(struct idem_slice mark);

/* Answers @op, an IDEM_OP_MOVE, when the store has the mark @mark, and the fences and
 * time of @now. If @op was to set a mark, @mark is that, or another caller's. */
void idem__move_answer(struct idem_op *op, const char *mark,
                       const struct idem_now *now);

/* Runs it for a store that has its @mark in hand. True: @mark was replaced, and floor
 * and time are to be raised. */
bool idem__move_run(struct idem_op *op, char mark[IDEM_MARK_MAX],
                    const struct idem_now *now);

#endif
