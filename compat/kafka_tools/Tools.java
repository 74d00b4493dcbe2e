import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;

import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Kafka's tools one after another, so that only the first has to wait for Java.
 *
 * Each line of the input is a class, what the tool is to read, and its arguments; each line of the output is the
 * exit code and what the tool has printed, on its output and for errors. Words are in base64, with tabs between.
 * The exit code is missing if the tool has ended Java with it.
 */
public final class Tools {
    private static final class Ended extends RuntimeException {
        private static final long serialVersionUID = 1L;

        private Ended() {
            super("<end>", null, false, false);
        }
    }

    /** What the running tool has asked for first: it may take being stopped for a failure, and ask again. */
    private static Integer exitCode;

    /** What the running tool wants to be done when Java ends. */
    private static final List<Runnable> AT_THE_END = new ArrayList<>();

    private static final PrintStream ANSWERS = System.out;
    private static ByteArrayOutputStream output = new ByteArrayOutputStream();
    private static ByteArrayOutputStream errors = new ByteArrayOutputStream();

    private Tools() {
    }

    public static void main(String[] arguments) throws Exception {
        Exit.Procedure end = (code, message) -> {
            if (exitCode == null) {
                exitCode = code;
            }
            throw new Ended();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        Exit.setShutdownHookAdder((name, runnable) -> AT_THE_END.add(runnable));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> answer("")));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = Arrays.stream(line.split("\t", -1)).map(Tools::decoded).toArray(String[]::new);
            output = new ByteArrayOutputStream();
            errors = new ByteArrayOutputStream();
            System.setIn(new ByteArrayInputStream(words[1].getBytes(StandardCharsets.UTF_8)));
            System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
            answer(String.valueOf(run(Class.forName(words[0]), Arrays.copyOfRange(words, 2, words.length))));
        }
        Runtime.getRuntime().halt(0);
    }

    private static int run(Class<?> tool, String[] arguments) throws Exception {
        exitCode = null;
        AT_THE_END.clear();
        int code = 0;
        try {
            tool.getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException failure) {
            if (!(failure.getCause() instanceof Ended)) {
                System.err.print("Exception in thread \"main\" ");
                failure.getCause().printStackTrace();
                code = 1;
            }
        }
        for (Runnable runnable : List.copyOf(AT_THE_END)) {
            runnable.run();
        }
        return exitCode == null ? code : exitCode;
    }

    private static void answer(String code) {
        ANSWERS.println(code + "\t" + encoded(output) + "\t" + encoded(errors));
        ANSWERS.flush();
    }

    private static String decoded(String word) {
        return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
    }

    private static String encoded(ByteArrayOutputStream bytes) {
        return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }
}
