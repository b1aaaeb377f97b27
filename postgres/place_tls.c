/* TLS to another machine: verified, unless somebody has said otherwise. */
#include "base/host.h"
#include "core/error.h"
#include "postgres/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The file that libpq would use. */
static bool has_root_file(void)
{
    const char *home = getenv("HOME");
    char path[512];

    if (home == NULL) {
        return false;
    }
    (void)snprintf(path, sizeof(path), "%.400s/.postgresql/root.crt", home);
    return access(path, R_OK) == 0;
}

/* "prefer" is what libpq takes where nobody has said anything. */
static bool is_said(const char *sslmode)
{
    const char *env = getenv("PGSSLMODE");

    return (env != NULL && env[0] != '\0') ||
           (sslmode != NULL && strcmp(sslmode, "prefer") != 0);
}

int idem__pg_place_secure(struct idem__pg_place *place, const char *sslmode,
                          const char *sslrootcert, struct idem_error *error)
{
    const char *mode = idem__pg_place_get(place, "sslmode");
    const char *ca;
    int rc = 0;

    if (mode == NULL && is_said(sslmode)) {
        mode = sslmode;
    }
    if (mode == NULL && !place->local) {
        mode = "verify-full";
        rc = idem__pg_place_set(place, "sslmode", mode, error);
    }
    if (rc != 0 || mode == NULL || strcmp(mode, "verify-full") != 0 ||
        sslrootcert != NULL || has_root_file()) {
        return rc;
    }
    /* libpq 15 does not look where the system has its certificates. */
    ca = idem__ca_file(NULL, "");
    place->own_ca = ca != NULL;
    return ca == NULL ? 0 : idem__pg_place_set(place, "sslrootcert", ca, error);
}
