/* The control of Postgres.java: the same with a table of keys, and two commits.
 *
 * The transfer is committed, and then its key. Killed in between, this program leaves a
 * transfer without a key, and the next try transfers again.
 */
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

public class ApartPostgres {
    static final String PAY = "UPDATE account SET balance = balance + ? WHERE name = ?";
    static final String WRITE_DOWN = "INSERT INTO transfer (key, payer, payee, amount)"
            + " VALUES (?, ?, ?, ?) RETURNING id";

    /** Runs @sql. Answers the text in its one row, or null. */
    static String run(Connection db, String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = db.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) {
                statement.setObject(i + 1, values[i]);
            }
            ResultSet rows = statement.execute() ? statement.getResultSet() : null;
            return rows != null && rows.next() ? rows.getString(1) : null;
        }
    }

    static String moveMoney(Connection db, String key, String payer, String payee, long amount)
            throws SQLException {
        db.setAutoCommit(false);
        run(db, PAY, -amount, payer);
        run(db, PAY, amount, payee);
        String number = run(db, WRITE_DOWN, key, payer, payee, amount);
        db.commit();
        db.setAutoCommit(true);
        return "transfer " + number + ": " + amount + " from " + payer + " to " + payee + "\n";
    }

    public static void main(String[] args) throws SQLException {
        try (Connection db = DriverManager.getConnection(args[0])) {
            String key = args[1];
            String receipt = run(db, "SELECT receipt FROM done WHERE key = ?", key);
            if (receipt == null) {
                receipt = moveMoney(db, key, args[2], args[3], Long.parseLong(args[4]));
                run(db, "INSERT INTO done VALUES (?, ?)", key, receipt);
            }
            System.out.print(receipt);
        }
    }
}
