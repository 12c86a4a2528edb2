package io.coldframe;

/** The bytes of a file violate its format. */
public class CorruptFileError extends ColdframeError {
  private static final long serialVersionUID = 1L;

  private final String path;
  private final long offset;
  private final String structure;
  private final String reason;

  public CorruptFileError(String message, String path, long offset, String structure, String reason) {
    super(message);
    this.path = path;
    this.offset = offset;
    this.structure = structure;
    this.reason = reason;
  }

  /** The file. */
  public String path() {
    return path;
  }

  /** The file offset of the damage, -1 if unknown. */
  public long offset() {
    return offset;
  }

  /** The structure that was being read. */
  public String structure() {
    return structure;
  }

  /** What is wrong, without path and offset. */
  public String reason() {
    return reason;
  }
}
