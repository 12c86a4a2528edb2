package io.coldframe;

/** Valid, but not something this package does. */
public class UnsupportedError extends ColdframeError {
  private static final long serialVersionUID = 1L;

  public UnsupportedError(String message) {
    super(message);
  }
}
