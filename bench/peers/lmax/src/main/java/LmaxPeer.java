import com.lmax.disruptor.BatchEventProcessor;
import com.lmax.disruptor.BatchEventProcessorBuilder;
import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.SequenceBarrier;
import com.lmax.disruptor.YieldingWaitStrategy;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;

/**
 * Runs the LMAX Disruptor in the shapes of its own throughput tests, one window for each line of standard input:
 *
 *   pipeline ELEMENTS                one producer, three consumers one behind the other, a ring of 8192
 *   three-to-one ELEMENTS BATCH      three producers that claim BATCH at a time, one consumer, a ring of 65536
 *
 * and answers each with "ELEMENTS WALL_NANOSECONDS CPU_NANOSECONDS". Between windows no thread of it runs.
 */
public final class LmaxPeer {
  private static final int PIPELINE_SLOTS = 8 * 1024;
  private static final int THREE_TO_ONE_SLOTS = 64 * 1024;
  private static final int PRODUCERS = 3;

  /** The work of the pipeline: each consumer computes from what the one before it left. */
  static final class Step {
    long first;
    long second;
    long sum;
    long shifted;
  }

  static final class Value {
    long value;
  }

  /** Counts a latch down when the last element of the window has been handled. */
  abstract static class Last<T> implements EventHandler<T> {
    private final CountDownLatch done = new CountDownLatch(1);
    private final long lastSequence;

    Last(long lastSequence) {
      this.lastSequence = lastSequence;
    }

    abstract void handle(T event);

    @Override
    public final void onEvent(T event, long sequence, boolean endOfBatch) {
      handle(event);
      if (sequence == lastSequence) {
        done.countDown();
      }
    }

    void await() throws InterruptedException {
      done.await();
    }
  }

  static final class Odd extends Last<Step> {
    long count;

    Odd(long lastSequence) {
      super(lastSequence);
    }

    @Override
    void handle(Step step) {
      if ((step.shifted & 4L) == 4L) {
        ++count;
      }
    }
  }

  static final class Sum extends Last<Value> {
    long total;

    Sum(long lastSequence) {
      super(lastSequence);
    }

    @Override
    void handle(Value event) {
      total += event.value;
    }
  }

  /** The threads of a window's consumers. */
  static final class Consumers {
    private final List<BatchEventProcessor<?>> processors = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();

    void start(BatchEventProcessor<?> processor) {
      processors.add(processor);
      Thread thread = new Thread(processor);
      threads.add(thread);
      thread.start();
    }

    void awaitRunning() {
      for (BatchEventProcessor<?> processor : processors) {
        while (!processor.isRunning()) {
          Thread.yield();
        }
      }
    }

    void stop() throws InterruptedException {
      for (BatchEventProcessor<?> processor : processors) {
        processor.halt();
      }
      for (Thread thread : threads) {
        thread.join();
      }
    }
  }

  private static void pipeline(long elements) throws Exception {
    RingBuffer<Step> ring = RingBuffer.createSingleProducer(Step::new, PIPELINE_SLOTS, new YieldingWaitStrategy());
    BatchEventProcessorBuilder builder = new BatchEventProcessorBuilder();
    SequenceBarrier published = ring.newBarrier();
    BatchEventProcessor<Step> one = builder.build(ring, published, (step, s, e) -> step.sum = step.first + step.second);
    SequenceBarrier afterOne = ring.newBarrier(one.getSequence());
    BatchEventProcessor<Step> two = builder.build(ring, afterOne, (step, s, e) -> step.shifted = step.sum + 3L);
    SequenceBarrier afterTwo = ring.newBarrier(two.getSequence());
    Odd odd = new Odd(elements - 1);
    BatchEventProcessor<Step> three = builder.build(ring, afterTwo, odd);
    ring.addGatingSequences(three.getSequence());

    Consumers consumers = new Consumers();
    consumers.start(one);
    consumers.start(two);
    consumers.start(three);
    consumers.awaitRunning();
    long cpu = cpuNanos();
    long start = System.nanoTime();
    long second = 777L;
    for (long i = 0; i < elements; ++i) {
      long sequence = ring.next();
      Step step = ring.get(sequence);
      step.first = i;
      step.second = second--;
      ring.publish(sequence);
    }
    odd.await();
    long wall = System.nanoTime() - start;
    cpu = cpuNanos() - cpu;
    consumers.stop();
    // first + second is 777 for every element, and 777 + 3 has bit 2 set.
    check(odd.count == elements, "the pipeline counted " + odd.count + " of " + elements);
    answer(elements, wall, cpu);
  }

  private static void threeToOne(long elements, int batch) throws Exception {
    long each = elements / PRODUCERS / batch * batch;
    long total = each * PRODUCERS;
    RingBuffer<Value> ring = RingBuffer.createMultiProducer(Value::new, THREE_TO_ONE_SLOTS, new YieldingWaitStrategy());
    Sum sum = new Sum(total - 1);
    BatchEventProcessor<Value> processor = new BatchEventProcessorBuilder().build(ring, ring.newBarrier(), sum);
    ring.addGatingSequences(processor.getSequence());
    Consumers consumers = new Consumers();
    consumers.start(processor);
    consumers.awaitRunning();

    CyclicBarrier together = new CyclicBarrier(PRODUCERS + 1);
    List<Thread> producers = new ArrayList<>();
    for (int p = 0; p < PRODUCERS; ++p) {
      Thread thread = new Thread(() -> {
        await(together);
        if (batch == 1) {
          produce(ring, each);
        } else {
          produceBatches(ring, each, batch);
        }
      });
      producers.add(thread);
      thread.start();
    }
    long cpu = cpuNanos();
    long start = System.nanoTime();
    await(together);
    for (Thread thread : producers) {
      thread.join();
    }
    sum.await();
    long wall = System.nanoTime() - start;
    cpu = cpuNanos() - cpu;
    consumers.stop();
    check(sum.total == PRODUCERS * (each * (each - 1) / 2), "three-to-one summed up " + sum.total);
    answer(total, wall, cpu);
  }

  private static void produce(RingBuffer<Value> ring, long each) {
    for (long i = 0; i < each; ++i) {
      long sequence = ring.next();
      ring.get(sequence).value = i;
      ring.publish(sequence);
    }
  }

  private static void produceBatches(RingBuffer<Value> ring, long each, int batch) {
    for (long i = 0; i < each; i += batch) {
      long last = ring.next(batch);
      long first = last - (batch - 1);
      for (long sequence = first; sequence <= last; ++sequence) {
        ring.get(sequence).value = i + (sequence - first);
      }
      ring.publish(first, last);
    }
  }

  private static void await(CyclicBarrier barrier) {
    try {
      barrier.await();
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  private static long cpuNanos() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
  }

  private static void check(boolean condition, String message) {
    if (!condition) {
      throw new IllegalStateException(message);
    }
  }

  private static void answer(long elements, long wallNanos, long cpuNanos) {
    System.out.println(elements + " " + wallNanos + " " + cpuNanos);
    System.out.flush();
  }

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.trim().split(" +");
      switch (words[0]) {
        case "pipeline" -> pipeline(Long.parseLong(words[1]));
        case "three-to-one" -> threeToOne(Long.parseLong(words[1]), Integer.parseInt(words[2]));
        default -> throw new IllegalArgumentException("do not know '" + line + "'");
      }
    }
  }
}
