/* Marks a copy that was put back, as an operator would. */
#include "worker.h"

#include <idem/sqlite.h>

int role_restore(struct worker *w)
{
    struct idem_sqlite_restored restored = IDEM_SQLITE_RESTORED_INIT;
    struct idem_error error = {0};

    if (idem_sqlite_mark_restored(w->path, /* progress= */ NULL,
                                  /* ctx= */ NULL, &restored, &error) != 0) {
        worker_complain(w->path, "mark", &error);
        return 1;
    }
    return 0;
}
