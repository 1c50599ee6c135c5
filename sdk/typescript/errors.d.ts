/** A refusal of the server, or a failure to reach it. Programs should depend only on the code. */
export class HoldfastError extends Error {
  constructor(code: string, detail: string, options?: { status?: number; data?: Record<string, any>; retryable?: boolean; retryAfterMs?: number; cause?: unknown });
  /**
   * The code of the server's response, such as CLAIM_FAILED. If there is no response, it is OUTCOME_UNKNOWN if the call may have
   * taken effect, and UNAVAILABLE if it changed nothing.
   */
  readonly code: string;
  /** What is wrong and what to do. */
  readonly detail: string;
  /** The HTTP status; 0 without a response of the server. */
  readonly status: number;
  /** The additional fields of the code, such as lastVersion. */
  readonly data: Record<string, any>;
  readonly requestId: string;
  /** Whether the same call may succeed later. Repeat a change only with the same idempotency key. */
  readonly retryable: boolean;
  /** How long the server asks to wait before the next attempt. */
  readonly retryAfterMs: number;
}
