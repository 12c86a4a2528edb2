package io.coldframe;

/** The input or request is valid, but this package does not support it. */
public class UnsupportedError extends ColdframeError {
  private static final long serialVersionUID = 1L;

  public UnsupportedError(String message) {
    super(message);
  }
}
