/* The inside of ops: making them and filling in their arguments. */
#ifndef IDEM_QUEUE_OP_H
#define IDEM_QUEUE_OP_H

#include "contract/parts.h"

/* A zeroed op of @verb with room for @args_len bytes of arguments, or NULL. */
struct idem_op *idem__op_create(enum idem_verb verb, size_t args_len);

/* Gives a long block of arguments, to which the record of the answer points, to
 * the caller; NULL: nothing points to them. */
uint8_t *idem__op_take_args(struct idem_op *op);

/* Copies what *@slice points to into the op's arguments and points it there. */
void idem__op_keep(struct idem_op *op, struct idem_slice *slice);

/* Gives an import @op its copy of @record, whose slices are as they were. 0 or
 * IDEM_ENOMEM. */
int idem__op_import(struct idem_op *op, const struct idem_record *record);

/* How many bytes the slices of @record need in an op's arguments; and copies
 * them there. */
size_t idem__op_record_len(const struct idem_record *record);
void idem__op_keep_record(struct idem_op *op, struct idem_record *record);

/* An independent copy in state IDLE, without answer, or NULL. */
struct idem_op *idem__op_clone(const struct idem_op *op);

#endif
