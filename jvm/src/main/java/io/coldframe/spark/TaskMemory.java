package io.coldframe.spark;

import io.coldframe.ColdframeError;
import java.io.IOException;
import org.apache.spark.TaskContext;
import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.memory.TaskMemoryManager;

/**
 * Charges the memory of batches to the task, so that other consumers of the task's memory spill before no
 * memory is left.
 */
final class TaskMemory extends MemoryConsumer {
  private TaskMemory(TaskMemoryManager manager) {
    super(manager, manager.pageSizeBytes(), MemoryMode.ON_HEAP);
  }

  /** The account of a task; null outside of a task, as in tests. */
  static TaskMemory of(TaskContext context) {
    return context == null ? null : new TaskMemory(context.taskMemoryManager());
  }

  /** Frees nothing, because the task is using the batch. */
  @Override
  public long spill(long size, MemoryConsumer trigger) throws IOException {
    return 0;
  }

  void acquire(long bytes) {
    if (bytes == 0) {
      return; // a batch without columns; Spark rejects a request for 0 bytes
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
