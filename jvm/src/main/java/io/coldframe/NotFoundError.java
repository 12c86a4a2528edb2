package io.coldframe;

/** The file, table or column does not exist. */
public class NotFoundError extends ColdframeError {
  private static final long serialVersionUID = 1L;

  public NotFoundError(String message) {
    super(message);
  }
}
