/* postgres_localized CONNINFO URL: sets the locale of its environment, as the host of a
 * library may, and connects to a server that refuses it. Prints what libpq says of it, and
 * what idem makes of that: the name of the error and its sentence. */
#include <idem.h>

#include <libpq-fe.h>
#include <locale.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct idem_open_options options = IDEM_OPEN_OPTIONS_INIT;
    struct idem_answer *answer = NULL;
    struct idem_error error = {0};
    struct idem_store *store;
    PGconn *conn;

    if (argc != 3 || setlocale(LC_ALL, "") == NULL) {
        return 2;
    }
    conn = PQconnectdb(argv[1]);
    (void)printf("%s\n", PQerrorMessage(conn));
    PQfinish(conn);
    options.timeout_ms = 3000;
    if (idem_open(argv[2], &options, &store, &error) == 0) {
        (void)idem_get(store, idem_str(""), idem_str("k"), &answer, &error);
        idem_answer_destroy(answer);
        idem_close(store);
    }
    (void)printf("%s %s\n", idem_error_name(error.code), error.text);
    return 0;
}
