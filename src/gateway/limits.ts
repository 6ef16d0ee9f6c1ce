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
  /** How long the headers of a request may take to arrive, and a connection to send any. */
  readonly headerMs: number;
  /** How long a whole request may take to arrive. */
  readonly requestMs: number;
  /** Connections at once, whatever they do; more are closed as they come. */
  readonly maxConnections: number;
  /** Of those, from one address; undefined for no bound of its own. */
  readonly maxConnectionsPerAddress?: number | undefined;
}

export const DEFAULT_LIMITS: GatewayLimits = {
  maxBodyBytes: 32 * 1024 * 1024,
  maxStreams: 10_000,
  connectMs: 2_000,
  firstByteMs: 300_000,
  gapMs: 60_000,
  answerMs: 600_000,
  clientStallMs: 60_000,
  headerMs: 20_000,
  requestMs: 120_000,
  maxConnections: 20_000,
};
