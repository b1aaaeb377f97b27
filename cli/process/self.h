/* self.h: this process, as the kernel knows it. */
#ifndef IDEM_CLI_PROCESS_SELF_H
#define IDEM_CLI_PROCESS_SELF_H

#include <sys/types.h>

/* The file of this program, also when its name was given to another one since. */
#define SELF_PROGRAM "/proc/self/exe"

/* The name that ps(1) and top(1) show, of which 15 bytes are kept. */
void self_set_name(const char *name);

/* After fork(), in the child of @parent: when that ends, @signo comes. Where it has
 * ended by now, this process ends as if the signal had come. */
void self_end_with(pid_t parent, int signo);

#endif
