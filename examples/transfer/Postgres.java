/* A transfer of money and the end of its attempt in one commit of PostgreSQL, from Java.
 *
 *     $ apt install openjdk-17-jdk-headless libpostgresql-jdbc-java
 *     $ export CLASSPATH=/usr/share/java/postgresql.jar
 *     $ export IDEM_STORE=postgres:///bank        # made by: idem store create
 *     $ java Postgres.java jdbc:postgresql://localhost/bank order-42 ann bob 30
 *     transfer 1: 30 from ann to bob
 *     $ java Postgres.java jdbc:postgresql://localhost/bank order-42 ann bob 30   # again
 *     transfer 1: 30 from ann to bob
 *
 * The database has the tables of postgres.c, which is the same in C. idem claims the key,
 * with a lease. "idem complete --as-sql" prints the statement that ends the attempt, and
 * this program runs it with its own driver, beside its own changes. Whenever it is killed,
 * both are there or neither is; once the lease is over, the next call does the rest.
 *
 * Exit status: 0 transferred, now or before; 1 refused, and nothing happened; 64 usage;
 * 65 the key is that of another transfer; 75 try again later.
 */
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

public class Postgres {
    static final String PAY = "UPDATE account SET balance = balance + ? WHERE name = ?";
    static final String WRITE_DOWN = "INSERT INTO transfer (key, payer, payee, amount)"
            + " VALUES (?, ?, ?, ?) RETURNING id";
    /* Java comes without a parser of JSON; PostgreSQL has one. */
    static final String READ_JSON = "SELECT said ->> 'text',"
            + " ARRAY(SELECT json_array_elements_text(said -> 'values'))"
            + " FROM (SELECT ?::json) AS line (said)";
    static final Pattern PARAMETER = Pattern.compile("\\$(\\d+)");
    static final String CHECK_VIOLATION = "23514";

    record Transfer(String key, String payer, String payee, long amount) {}

    /** What a command of idem printed, and its exit status. */
    record Said(int status, String printed) {}

    /** Nothing was transferred. */
    static class Refused extends Exception {
        final int status;

        Refused(int status, String why) {
            super(why);
            this.status = status;
        }
    }

    static Said idem(String... args) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("idem"));
        command.addAll(List.of(args));
        Process process = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        byte[] printed = process.getInputStream().readAllBytes();
        return new Said(process.waitFor(), new String(printed, StandardCharsets.UTF_8));
    }

    /** Answers 0 and the token of an attempt, or 10 and the receipt of an earlier transfer. */
    static Said claim(Transfer t) throws IOException, InterruptedException, Refused {
        /* A transfer takes milliseconds, and after a crash the next caller waits this long. */
        Said said = idem("begin", "-k", t.key, "--lease", "4s", "--on-expired-lease", "rerun",
                "--max-attempts", "0", "--retention", "never",
                "--fingerprint", t.payer + " " + t.payee + " " + t.amount);
        if (said.status != 0 && said.status != 10) {
            throw new Refused(said.status == 65 ? 65 : 75, "idem begin failed");
        }
        return said;
    }

    static void pay(Connection db, String name, long change) throws SQLException, Refused {
        try (PreparedStatement pay = db.prepareStatement(PAY)) {
            pay.setLong(1, change);
            pay.setString(2, name);
            if (pay.executeUpdate() != 1) {
                throw new Refused(1, "there is no account " + name);
            }
        }
    }

    /** The effect. Answers the receipt. */
    static String moveMoney(Connection db, Transfer t) throws SQLException, Refused {
        pay(db, t.payer, -t.amount);
        pay(db, t.payee, t.amount);
        try (PreparedStatement insert = db.prepareStatement(WRITE_DOWN)) {
            insert.setString(1, t.key);
            insert.setString(2, t.payer);
            insert.setString(3, t.payee);
            insert.setLong(4, t.amount);
            ResultSet row = insert.executeQuery();
            row.next();
            return "transfer " + row.getLong(1) + ": " + t.amount + " from " + t.payer
                    + " to " + t.payee + "\n";
        }
    }

    /** Completes the attempt in the transaction that is open. */
    static void end(Connection db, String token, String receipt)
            throws IOException, InterruptedException, SQLException, Refused {
        Said said = idem("complete", "--token", token, "--result", receipt, "--as-sql");
        if (said.status != 0) {
            throw new Refused(75, "idem complete failed");
        }
        String text;
        String[] values;
        try (PreparedStatement json = db.prepareStatement(READ_JSON)) {
            json.setString(1, said.printed);
            ResultSet row = json.executeQuery();
            row.next();
            text = row.getString(1);
            values = (String[]) row.getArray(2).getArray();
        }
        /* JDBC writes each parameter as "?", and numbers them in the order of the text. */
        List<String> ordered = new ArrayList<>();
        text = PARAMETER.matcher(text).replaceAll(found -> {
            ordered.add(values[Integer.parseInt(found.group(1)) - 1]);
            return "?";
        });
        try (PreparedStatement end = db.prepareStatement(text)) {
            for (int i = 0; i < ordered.size(); i++) {
                end.setString(i + 1, ordered.get(i));
            }
            end.executeQuery();
        }
    }

    /** Answers the receipt. What is not committed is rolled back by close(). */
    static String moveMoneyAndEnd(String url, Transfer t, String token)
            throws IOException, InterruptedException, SQLException, Refused {
        try (Connection db = DriverManager.getConnection(url)) {
            db.setAutoCommit(false);
            String receipt = moveMoney(db, t);
            end(db, token, receipt);
            db.commit();
            return receipt;
        }
    }

    /** Answers the receipt: that of the first transfer with this key. */
    static String transfer(String url, Transfer t)
            throws IOException, InterruptedException, SQLException, Refused {
        Said claim = claim(t);
        if (claim.status == 10) {
            return claim.printed;
        }
        String token = claim.printed.strip();
        try {
            return moveMoneyAndEnd(url, t, token);
        } catch (SQLException | Refused error) {
            boolean refused = error instanceof Refused no ? no.status == 1
                    : CHECK_VIOLATION.equals(((SQLException) error).getSQLState());
            if (!refused) {
                throw error;
            }
            idem("release", "--token", token);
            throw new Refused(1, "there is no such account, or not enough in it");
        }
    }

    static int run(String[] args) throws IOException, InterruptedException {
        if (args.length != 5 || !args[4].matches("[0-9]{1,18}")) {
            System.err.println("usage: Postgres DB KEY FROM TO AMOUNT");
            return 64;
        }
        Transfer t = new Transfer(args[1], args[2], args[3], Long.parseLong(args[4]));
        try {
            System.out.print(transfer(args[0], t));
            return 0;
        } catch (Refused refused) {
            System.err.println("nothing was transferred: " + refused.getMessage());
            return refused.status;
        } catch (SQLException error) {
            /* Also where the answer to COMMIT was lost: the next call knows. */
            System.err.println("try again: " + error.getMessage());
            return 75;
        }
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        System.exit(run(args));
    }
}
