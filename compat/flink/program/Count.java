import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** Says of each record how often its value has come so far: {@code value=count}. */
final class Count extends KeyedProcessFunction<String, Heard, Heard> {
    private static final long serialVersionUID = 1;

    private transient ValueState<Integer> count;

    @Override
    public void open(OpenContext context) {
        count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Integer.class));
    }

    @Override
    public void processElement(Heard heard, Context context, Collector<Heard> out) throws Exception {
        int before = count.value() == null ? 0 : count.value();
        count.update(before + 1);
        heard.value = heard.value + "=" + (before + 1);
        out.collect(heard);
    }
}
