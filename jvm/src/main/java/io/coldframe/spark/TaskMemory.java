package io.coldframe.spark;

import io.coldframe.ColdframeError;
import java.io.IOException;
import org.apache.spark.TaskContext;
import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.memory.TaskMemoryManager;

/** Counts the memory of batches as the task's, so that others of it spill before the machine has none left. */
final class TaskMemory extends MemoryConsumer {
  private TaskMemory(TaskMemoryManager manager) {
    super(manager, manager.pageSizeBytes(), MemoryMode.ON_HEAP);
  }

  /** Of a task; outside of one, as in tests, nobody counts. */
  static TaskMemory of(TaskContext context) {
    return context == null ? null : new TaskMemory(context.taskMemoryManager());
  }

  /** A batch is in use by the consumer that would have to spill it. */
  @Override
  public long spill(long size, MemoryConsumer trigger) throws IOException {
    return 0;
  }

  void acquire(long bytes) {
    if (bytes == 0) {
      return; // a batch without columns, of which Spark would say that it is no request
    }
    long got = acquireMemory(bytes);
    if (got < bytes) {
      release(got);
      throw new ColdframeError(
          "a batch of " + bytes + " bytes is more than the task's memory has left (" + got
              + "): give the executor more memory, or a smaller option batch_rows");
    }
  }

  void release(long bytes) {
    long held = Math.min(bytes, getUsed());
    if (held > 0) {
      freeMemory(held);
    }
  }
}
