// Codes of refusals that a retry may not get again.
const temporary = new Set(["RATE_LIMITED", "KEY_IN_FLIGHT", "UNAVAILABLE", "MUTATION_TIMEOUT", "OUTCOME_UNKNOWN"]);

export class HoldfastError extends Error {
  constructor(code, detail, { status = 0, data = {}, retryable = temporary.has(code), retryAfterMs = 0, cause } = {}) {
    super(`${code}: ${detail}`, { cause });
    this.name = "HoldfastError";
    this.code = code;
    this.detail = detail;
    this.status = status;
    this.data = data;
    this.requestId = data.requestId ?? "";
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
  }

  /** Returns the error of a problem document (RFC 9457). */
  static of(problem, retryAfterMs) {
    const { type, title, status, code, detail, ...data } = problem;
    const error = new HoldfastError(code, detail ?? title ?? "", { status, data, retryAfterMs });
    if (code === "QUOTA_EXCEEDED") error.retryable = retryAfterMs > 0; // a quota that only time frees says when to try again
    return error;
  }
}

/** Returns an error for wrong arguments, which no request was sent with. */
export function invalid(detail) {
  return new HoldfastError("VALIDATION_ERROR", detail);
}
