import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Kafka's tools one after another, so that only the first has to wait for Java.
 *
 * Each line of the input is a class and its arguments, with tabs between them. After what a tool prints, a line
 * that begins with the character 0x1e gives its exit code.
 */
public final class Tools {
    private static final class Ended extends RuntimeException {
        private static final long serialVersionUID = 1L;

        private Ended() {
            super(null, null, false, false);
        }
    }

    /** What the running tool has asked for first: it may take being stopped for a failure, and ask again. */
    private static Integer exitCode;

    private Tools() {
    }

    public static void main(String[] arguments) throws Exception {
        Exit.setExitProcedure((code, message) -> {
            if (exitCode == null) {
                exitCode = code;
            }
            throw new Ended();
        });
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split("\t", -1);
            int code = run(Class.forName(words[0]), Arrays.copyOfRange(words, 1, words.length));
            System.out.println("\u001e" + code);
        }
        Runtime.getRuntime().halt(0);
    }

    private static int run(Class<?> tool, String[] arguments) throws Exception {
        exitCode = null;
        try {
            tool.getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException failure) {
            if (!(failure.getCause() instanceof Ended)) {
                throw failure;
            }
        }
        return exitCode == null ? 0 : exitCode;
    }
}
