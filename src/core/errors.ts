const MARKER = Symbol.for("warmpath.error");

/** Every code an error of Warmpath can carry; each one is explained in docs/reference/errors.md. */
export type ErrorCode =
  | "WP_INVALID_INPUT"
  | "WP_UNKNOWN_POLICY"
  | "WP_UNKNOWN_REPLICA"
  | "WP_UNKNOWN_REQUEST"
  | "WP_DUPLICATE_REQUEST"
  | "WP_CAPACITY_EXCEEDED"
  | "WP_INVALID_STATE";

/**
 * The base of all errors that Warmpath throws. Expected outcomes (a shed request, no eligible worker) are values, not
 * errors; what is thrown is bad input at an edge or a mistake in the calling program.
 */
export class WarmpathError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "WarmpathError";
    this.code = code;
    Object.defineProperty(this, MARKER, { value: true });
  }

  /** True for errors of any copy of this package, which `instanceof` is not. */
  static isInstance(value: unknown): value is WarmpathError {
    return typeof value === "object" && value !== null && MARKER in value;
  }
}
