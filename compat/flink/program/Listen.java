import org.apache.flink.api.common.functions.RichMapFunction;

/** Tells what it hears and passes its value on; fails at a value that begins with "fail" when it comes first. */
final class Listen extends RichMapFunction<Heard, String> {
    private static final long serialVersionUID = 1;

    private final String job;
    private final boolean hangs;

    /** {@code hangs}: whether it never comes back from a value that begins with "hang". */
    Listen(String job, boolean hangs) {
        this.job = job;
        this.hangs = hangs;
    }

    @Override
    public String map(Heard heard) throws InterruptedException {
        Told told = Told.of(job);
        told.hear(getRuntimeContext().getTaskInfo().getIndexOfThisSubtask(), heard);
        if (told.isFirst("fail", heard.value)) {
            throw new IllegalStateException("as it is meant to, at " + heard.value);
        }
        if (hangs && heard.value.startsWith("hang")) {
            Thread.sleep(Long.MAX_VALUE);
        }
        return heard.value;
    }
}
