package io.coldframe;

/** The data is encrypted and no key that opens it was given. */
public class KeyUnavailableError extends ColdframeError {
  private static final long serialVersionUID = 1L;

  public KeyUnavailableError(String message) {
    super(message);
  }
}
