package io.coldframe;

/** Base of all errors of this package. The classes have the same names as in Python. */
public class ColdframeError extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public ColdframeError(String message) {
    super(message);
  }
}
