/* Tests of postgres/place.c: where a URL leads, and what of it is shown. */
#include "postgres/place.h"

#include "temp.h"
#include "test.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

/* Nothing that this machine has set for libpq. */
static void clear_environment(void)
{
    static const char *const names[] = {"PGHOST",    "PGPORT",     "PGUSER",
                                        "PGSSLMODE", "PGDATABASE", "PGSERVICE",
                                        "PGPASSWORD"};

    EACH(name, names) {
        assert_int_equal(unsetenv(*name), 0);
    }
    assert_int_equal(setenv("HOME", "/nonexistent", 1), 0);
    assert_int_equal(setenv("PGUSER", "me", 1), 0);
}

static struct idem__pg_place read_place(const char *text)
{
    struct idem__pg_place place;

    assert_ok(idem__pg_place_read(text, &place, &why));
    return place;
}

static void expect_option(const char *text, const char *name, const char *value)
{
    struct idem__pg_place place = read_place(text);
    const char *found = idem__pg_place_get(&place, name);

    if (value == NULL) {
        assert_null(found);
    } else {
        assert_non_null(found);
        assert_string_equal(found, value);
    }
    idem__pg_place_finish(&place);
}

static void expect_refusal(const char *text, const char *word)
{
    struct idem__pg_place place;

    assert_code(IDEM_EINVALID, idem__pg_place_read(text, &place, &why));
    if (strstr(why.text, word) == NULL) {
        fail_with("%s: %s", text, why.text);
    }
    assert_null(strstr(why.text, "secret"));
}

TEST(place, isRead)
{
    struct idem__pg_place place;

    clear_environment();
    place = read_place("//u%40x:s%2Fcret@127.0.0.1:5433/d%20b"
                       "?schema=of_mine&prepare=no&cache=1h&connect_timeout=3");
    assert_string_equal(idem__pg_place_get(&place, "user"), "u@x");
    assert_string_equal(idem__pg_place_get(&place, "password"), "s/cret");
    assert_string_equal(idem__pg_place_get(&place, "port"), "5433");
    assert_string_equal(idem__pg_place_get(&place, "connect_timeout"), "3");
    assert_string_equal(place.schema, "of_mine");
    assert_false(place.prepare);
    assert_int_equal(place.cache_ms, 3600000);
    assert_null(strstr(place.url, "cache"));
    assert_true(place.local);
    assert_null(strstr(place.url, "cret"));
    assert_non_null(strstr(place.url, "schema=of_mine"));
    assert_null(strstr(place.endpoint, "cret"));
    idem__pg_place_finish(&place);
    place = read_place("///");
    assert_string_equal(place.schema, "idem");
    assert_true(place.prepare);
    assert_false(place.host_clock);
    assert_int_equal(place.cache_ms, 0);
    assert_string_equal(idem__pg_place_get(&place, "dbname"), "me");
    idem__pg_place_finish(&place);
}

/* The URL on record leads to the same place, from a process without the settings of
 * this one. */
TEST(place, isWrittenForAnybody)
{
    struct idem__pg_place place;
    struct idem__pg_place again;

    clear_environment();
    assert_int_equal(setenv("PGHOST", "a.example,b.example", 1), 0);
    assert_int_equal(setenv("PGPORT", "5433,5434", 1), 0);
    assert_int_equal(setenv("PGUSER", "some one&all", 1), 0);
    place = read_place("///orders?schema=s&prepare=no&clock=host");
    clear_environment();
    again = read_place(strchr(place.url, ':') + 1);
    assert_string_equal(again.url, place.url);
    assert_string_equal(again.endpoint, place.endpoint);
    assert_string_equal(idem__pg_place_get(&again, "user"), "some one&all");
    assert_string_equal(idem__pg_place_get(&again, "target_session_attrs"),
                        "read-write");
    assert_true(again.host_clock);
    idem__pg_place_finish(&place);
    idem__pg_place_finish(&again);
}

static void expect_hosts(const struct idem__pg_place *place, const char *host,
                         const char *port)
{
    assert_string_equal(idem__pg_place_get(place, "host"), host);
    assert_string_equal(idem__pg_place_get(place, "port"), port);
}

TEST(place, turnsItsHosts)
{
    struct idem__pg_place place;

    clear_environment();
    place =
        read_place("//a,bcd:5433,ef:5434/x?hostaddr=1.1.1.1,2.2.2.2,3.3.3.3");
    idem__pg_place_turn(&place);
    expect_hosts(&place, "bcd,ef,a", "5433,5434,");
    assert_string_equal(idem__pg_place_get(&place, "hostaddr"),
                        "2.2.2.2,3.3.3.3,1.1.1.1");
    idem__pg_place_turn(&place);
    expect_hosts(&place, "ef,a,bcd", "5434,,5433");
    idem__pg_place_turn(&place);
    expect_hosts(&place, "a,bcd,ef", ",5433,5434");
    idem__pg_place_finish(&place);
    place = read_place("//a,b/x?port=5433&connect_timeout=7");
    idem__pg_place_turn(&place);
    expect_hosts(&place, "b,a", "5433");
    assert_int_equal(place.connect_ms, 7000);
    idem__pg_place_finish(&place);
}

/* Another machine proves who it is, unless somebody has set sslmode: in the URL, the
 * environment, or a service file. */
TEST(place, demandsAProof)
{
    const char *file = temp_path("services");
    char text[600];
    FILE *f;

    clear_environment();
    expect_option("//db.example/x", "sslmode", "verify-full");
    expect_option("//127.0.0.1,db.example/x", "sslmode", "verify-full");
    expect_option("//u@localhost/x", "sslmode", NULL);
    expect_option("///x?host=/run/pg", "sslmode", NULL);
    expect_option("//[::1]/x", "sslmode", NULL);
    expect_option("//127.1.2.3/x", "sslmode", NULL);
    expect_option("//127.0.0.1.example/x", "sslmode", "verify-full");
    expect_option("//localhost.example/x", "sslmode", "verify-full");
    expect_option("//db.example/x?sslmode=prefer", "sslmode", "prefer");
    expect_option("//db.example/x?sslmode=require", "sslrootcert", NULL);
    expect_option("//db.example/x?sslrootcert=/a", "sslrootcert", "/a");
    assert_int_equal(setenv("PGSSLMODE", "prefer", 1), 0);
    expect_option("//db.example/x", "sslmode", NULL);
    assert_int_equal(unsetenv("PGSSLMODE"), 0);

    f = fopen(file, "w");
    assert_non_null(f);
    (void)fprintf(f, "[away]\nhost=db.example\ndbname=x\nsslmode=require\n"
                     "[bare]\nhost=db.example\ndbname=x\n");
    assert_int_equal(fclose(f), 0);
    assert_int_equal(setenv("PGSERVICEFILE", file, 1), 0);
    (void)snprintf(text, sizeof(text), "///?service=%s", "away");
    expect_option(text, "sslmode", NULL);
    (void)snprintf(text, sizeof(text), "///?service=%s", "bare");
    expect_option(text, "sslmode", "verify-full");
    expect_option(text, "host", "db.example");
    assert_int_equal(unsetenv("PGSERVICEFILE"), 0);
}

/* What cannot be read is refused in our own words: libpq's would repeat the URL. */
TEST(place, isRefusedWithoutTheSecret)
{
    clear_environment();
    expect_refusal("db", "postgres://");
    expect_refusal("//u:secret@[::1/db", "cannot be read");
    expect_refusal("//u:secret%zz@h/db", "cannot be read");
    expect_refusal("//h/db?schema=a-b", "schema");
    expect_refusal("//h/db?schema=", "schema");
    expect_refusal("//h/db?schema=public", "ORM");
    expect_refusal("//h/db?schema=1a", "schema");
    expect_refusal("//h/db?schema=a;drop", "schema");
    expect_refusal("//h/db?prepare=maybe", "prepare");
    expect_refusal("//h/db?clock=wall", "clock");
    expect_refusal("//h/db?cache=0s", "cache: \"0s\" is not a time from 1ms");
    expect_refusal("//h/db?cache=61m", "1h");
    expect_refusal("//h/db?cache=", "30s");
    expect_refusal("//u:secret@h/db?colour=red", "colour");
    expect_refusal("//u:secret@h/db?password", "NAME=VALUE");
}

/* A password with an "@", "/" or "?" that is not escaped: libpq takes its rest for a host,
 * a port, a database or options, and these would be shown. */
TEST(place, isRefusedWithThePartOfASecret)
{
    clear_environment();
    expect_refusal("//u:a@secret@h/db", "%40");
    expect_refusal("//u:a/secret@h/db", "%2F");
    expect_refusal("//u:secret/b@h/db", "%2F");
    expect_refusal("//u:12/secret@h/db", "%2F");
    expect_refusal("//u:a?secret@h/db", "NAME=VALUE");
    expect_refusal("//u:a?secret=b@h/db", "%XX");
    expect_refusal("//u@h/secret@db", "%2F");
    expect_option("//u%40x:a%40b%2Fc@h/d%40b?user=me@there", "user",
                  "me@there");
    expect_option("///db?host=@abstract", "host", "@abstract");
}

/* Each host with its port, and addresses in brackets. */
TEST(place, namesItsHosts)
{
    static const struct {
        const char *text;
        const char *endpoint;
    } rows[] = {
        {"//h/db", "h:5432/db"},
        {"//[::1]:5433/db", "[::1]:5433/db"},
        {"//a:1,b:2/db", "a:1,b:2/db"},
        {"//a,[::1]/db?port=7", "a:7,[::1]:7/db"},
        {"//a,b:2/db", "a:5432,b:2/db"},
        {"///db?host=/run/pg", "/run/pg:5432/db"},
        {"///db", "local socket:5432/db"},
    };

    clear_environment();
    EACH(row, rows) {
        struct idem__pg_place place = read_place(row->text);

        assert_string_equal(place.endpoint, row->endpoint);
        idem__pg_place_finish(&place);
    }
}

/* Each option of this libpq that has a secret, and those of the newest one, which says by
 * its marks what is shown. */
TEST(place, knowsTheSecretsOfLibpq)
{
    static const struct {
        const char *name;
        const char *dispchar;
        bool secret;
    } rows[] = {
        {"password", "", true},
        {"sslpassword", "", true},
        {"oauth_client_secret", "", true},
        {"scram_client_key", "", true},
        {"scram_server_key", "D", true},
        {"of_version_30", "*", true},
        {"of_version_31", "D", true},
        {"replication", "D", false},
        {"sslkeylogfile", "D", false},
        {"user", "", false},
    };
    PQconninfoOption *options;
    PQconninfoOption *at;
    unsigned secrets = 0;

    EACH(row, rows) {
        if (idem__pg_option_is_secret(row->name, row->dispchar) !=
            row->secret) {
            fail_with("%s \"%s\"", row->name, row->dispchar);
        }
    }
    clear_environment();
    options = PQconndefaults();
    assert_non_null(options);
    for (at = options; at->keyword != NULL; at++) {
        struct idem__pg_place place;
        char said[] = "said: hunter2";
        char text[100];

        if (strcmp(at->dispchar, "*") != 0) {
            continue;
        }
        secrets++;
        (void)snprintf(text, sizeof(text), "//127.0.0.1/db?%s=hunter2",
                       at->keyword);
        place = read_place(text);
        assert_string_equal(idem__pg_place_get(&place, at->keyword), "hunter2");
        assert_null(strstr(place.url, "hunter2"));
        idem__pg_place_hide(&place, said);
        assert_string_equal(said, "said: *******");
        idem__pg_place_finish(&place);
    }
    PQconninfoFree(options);
    assert_true(secrets >= 2);
}
