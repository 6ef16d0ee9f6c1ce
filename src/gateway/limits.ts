/** Bounds of what the gateway takes in and waits for. */
export interface GatewayLimits {
  readonly maxBodyBytes: number;
  /** Requests under way at once; more are turned away. */
  readonly maxStreams: number;
  /** To reach a worker. */
  readonly connectMs: number;
  /** From sending a streaming request to its first content. */
  readonly firstByteMs: number;
  /** Between two chunks of a stream. */
  readonly gapMs: number;
  /** From sending a request that does not stream to its whole answer. */
  readonly answerMs: number;
  /** How long a client may leave its stream unread. */
  readonly clientStallMs: number;
}

export const DEFAULT_LIMITS: GatewayLimits = {
  maxBodyBytes: 32 * 1024 * 1024,
  maxStreams: 10_000,
  connectMs: 2_000,
  firstByteMs: 300_000,
  gapMs: 60_000,
  answerMs: 600_000,
  clientStallMs: 60_000,
};
