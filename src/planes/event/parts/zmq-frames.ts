import { WarmpathError } from "../../../core/errors.ts";

/** Sequence numbers as vLLM frames them: 8 bytes, big endian. */
const SEQUENCE_BYTES = 8;

/** Marks the end of what was sent again: -1 as vLLM writes it (`ZmqEventPublisher.END_SEQ`). */
export const END_OF_REPLAY: Buffer = Buffer.alloc(SEQUENCE_BYTES, 0xff);

export function sequenceFrame(sequence: number): Buffer {
  const frame = Buffer.alloc(SEQUENCE_BYTES);
  frame.writeBigUInt64BE(BigInt(sequence));
  return frame;
}

/** The number in a frame; undefined if it is none, or the end mark. */
export function sequenceOf(frame: Buffer | undefined): number | undefined {
  if (frame?.length !== SEQUENCE_BYTES) return undefined;
  const sequence = Number(frame.readBigUInt64BE());
  return Number.isSafeInteger(sequence) ? sequence : undefined;
}

const LAST_PORT = 65_535;

/** The endpoint of a rank: each publishes on a port of its own, counted from the first one's. */
export function endpointOfRank(endpoint: string, dpRank: number): string {
  const [, host = "", port] = /^(tcp:\/\/.*):(\d+)$/.exec(endpoint) ?? [];
  if (port === undefined) return endpoint;
  const ofRank = Number(port) + dpRank;
  // ZMQ would take the lowest 16 bits of it, and hear somebody else.
  if (ofRank < 1 || ofRank > LAST_PORT) {
    const place = dpRank === 0 ? endpoint : `${endpoint}, counted up to rank ${dpRank},`;
    throw new WarmpathError("WP_INVALID_INPUT", `${place} has no port from 1 to ${LAST_PORT}`);
  }
  return `${host}:${ofRank}`;
}
