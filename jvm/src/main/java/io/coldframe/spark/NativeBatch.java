package io.coldframe.spark;

/**
 * The memory of one batch. The memory is freed once: when all columns are closed, or earlier by {@link
 * #release}.
 */
final class NativeBatch {
  private final long number;
  private final long bytes;
  private final TaskMemory memory;
  private int open;
  private boolean released;

  NativeBatch(long number, long bytes, int columns, TaskMemory memory) {
    this.number = number;
    this.bytes = bytes;
    this.open = columns;
    this.memory = memory;
  }

  synchronized void closeColumn() {
    open--;
    if (open <= 0) {
      release();
    }
  }

  synchronized void release() {
    if (!released) {
      released = true;
      Native.release(number);
      if (memory != null) {
        memory.release(bytes);
      }
    }
  }
}
