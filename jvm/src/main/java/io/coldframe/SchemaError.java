package io.coldframe;

/** A schema, column, type or value does not fit. */
public class SchemaError extends ColdframeError {
  private static final long serialVersionUID = 1L;

  public SchemaError(String message) {
    super(message);
  }
}
