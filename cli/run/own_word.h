/* own_word.h: a command may use its token to say itself how it ended. */
#ifndef IDEM_CLI_RUN_OWN_WORD_H
#define IDEM_CLI_RUN_OWN_WORD_H

#include <idem.h>

/* Called after @attempt was answered LOST. The status that the attempt was
 * ended with by its own token; 0: it was really lost, or nobody can say. */
enum idem_status own_word(struct idem_store *store,
                          const struct idem_attempt *attempt);

#endif
