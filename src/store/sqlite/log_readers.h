/* Which process keeps the log from shrinking. */
#ifndef IDEM_STORE_SQLITE_LOG_READERS_H
#define IDEM_STORE_SQLITE_LOG_READERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The name of a process, cut to what the kernel keeps (proc_pid_comm(5)). */
enum {
    IDEM__PROCESS_NAME_LEN = 16
};

/* Finds a process that reads in the log of the database @path all the time, for a
 * quarter of a second: *@ret_pid and its name. False: there is none, or none of
 * this PID namespace. */
bool idem__log_reader(const char *path, pid_t *ret_pid,
                      char ret_name[IDEM__PROCESS_NAME_LEN]);

#endif
