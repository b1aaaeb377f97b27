// Charge.java KEY AMOUNT: charge once for each key, through idem serve. IDEM_STORE names the store.
import java.io.*;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.regex.*;

public final class Charge {
    static final Pattern TOKEN = Pattern.compile("\"((?:[^\"\\\\]++|\\\\.)*+)\"|[{}]|[^\\s,:\"{}]+");
    static final Pattern ESCAPE = Pattern.compile("\\\\(?:u(\\p{XDigit}{4})|.)");
    static final Pattern ESCAPED = Pattern.compile("[\"\\\\\\p{Cntrl}]");
    static final Object END = new Object();

    // Reads JSON without lists: a Map, a String, or any other value as text. Use a library in a service.
    static Object read(Matcher in) {
        in.find();
        if (in.group(1) != null) {
            return ESCAPE.matcher(in.group(1)).replaceAll(e -> Matcher.quoteReplacement(e.group(1) == null
                ? e.group().translateEscapes() : "" + (char) Integer.parseInt(e.group(1), 16)));
        }
        if (!in.group().equals("{")) return in.group().equals("}") ? END : in.group();
        var map = new HashMap<Object, Object>();
        for (Object name = read(in); name != END; name = read(in)) map.put(name, read(in));
        return map;
    }

    static String quote(String s) {
        return "\"" + ESCAPED.matcher(s).replaceAll(c -> String.format("\\\\u%04x", (int) c.group().charAt(0))) + "\"";
    }

    final BufferedReader answers;
    final BufferedWriter requests;
    Charge() throws IOException {
        var child = new ProcessBuilder("idem", "serve", "--stdio").redirectError(Redirect.INHERIT).start();
        answers = child.inputReader(StandardCharsets.UTF_8);
        requests = child.outputWriter(StandardCharsets.UTF_8);
        call("hello", "\"protocol\": 1, \"pid\": " + ProcessHandle.current().pid());
    }

    // One request at a time: the next line with its id is the answer.
    Map<?, ?> call(String method, String params) throws IOException {
        String id = UUID.randomUUID().toString();
        String form = "{\"jsonrpc\": \"2.0\", \"id\": \"%s\", \"method\": \"%s\", \"params\": {%s}}\n";
        requests.write(String.format(form, id, method, params));
        requests.flush();
        for (String line; (line = answers.readLine()) != null;) {
            var answer = (Map<?, ?>) read(TOKEN.matcher(line));
            if (!id.equals(answer.get("id"))) continue; // A notification.
            if (answer.get("error") instanceof Map<?, ?> e) throw new IOException((String) e.get("message"));
            return (Map<?, ?>) answer.get("result");
        }
        throw new EOFException("idem serve has ended");
    }

    // The work must be shorter than half of its lease: nothing renews it here.
    String once(String key, java.util.concurrent.Callable<String> work) throws Exception {
        String nonce = UUID.randomUUID().toString().replace("-", ""), result;
        var got = call("begin", String.format("\"key\": %s, \"nonce\": \"%s\", \"lease_ms\": 600000", quote(key), nonce));
        String verdict = (String) got.get("verdict");
        if (verdict.equals("REPLAY")) return (String) ((Map<?, ?>) got.get("result")).get("text");
        if (!verdict.equals("STARTED")) throw new IllegalStateException(key + ": " + verdict);
        String attempt = "\"attempt\": " + got.get("attempt");
        try {
            result = work.call();
        } catch (Exception error) { // It may have happened: a person must look.
            call("unknown", attempt + ", \"text\": " + quote(error.toString()));
            throw error;
        }
        call("complete", attempt + ", \"result\": {\"text\": " + quote(result) + "}");
        return result;
    }

    public static void main(String[] args) throws Exception {
        System.out.println(new Charge().once(args[0], () -> { // The effect: a line in the bank's ledger.
            int amount = Integer.parseInt(args[1]);
            try (var ledger = new FileWriter("ledger", true)) { ledger.write(args[0] + "\n"); }
            return String.format("{\"receipt\": %d, \"amount\": %d}", ProcessHandle.current().pid(), amount);
        }));
    }
}
