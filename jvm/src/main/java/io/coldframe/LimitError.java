package io.coldframe;

/** The file asks for more than a limit; it may be intact. The message names the option that raises the limit. */
public class LimitError extends ColdframeError {
  private static final long serialVersionUID = 1L;

  public LimitError(String message) {
    super(message);
  }
}
