package io.coldframe;

/** The data is encrypted, and no key was given that decrypts it. */
public class KeyUnavailableError extends ColdframeError {
  private static final long serialVersionUID = 1L;

  public KeyUnavailableError(String message) {
    super(message);
  }
}
