import type { ShedReason } from "../../core/admission/types.ts";
import type { ApiKey, KeyAllowance } from "./api-key.ts";
import { TokenBucket } from "./token-bucket.ts";

/** When to come again for a stream: others of the key end at any time. */
const STREAM_AGAIN_MS = 1000;

interface Account {
  readonly allowance: KeyAllowance;
  readonly requests: TokenBucket | undefined;
  readonly tokens: TokenBucket | undefined;
  /** Requests under way. */
  open: number;
}

/**
 * What each key has used of what it may. A request is let in as long as something is left; its prompt is taken at once, its
 * answer as it comes, so that one request can overdraw an account and the key then waits. Knows no clock but what it is told.
 */
export class KeyLimits {
  #accounts: ReadonlyMap<string, Account> = new Map();

  constructor(keys: readonly ApiKey[], nowMs: number) {
    this.replace(keys, nowMs);
  }

  /** Other keys, or other allowances; what was used under an allowance that stays is not forgotten. */
  replace(keys: readonly ApiKey[], nowMs: number): void {
    const before = this.#accounts;
    this.#accounts = new Map(keys.map((key) => [key.name, account(key, before.get(key.name), nowMs)]));
  }

  /** Takes a request in, or says why not. A key without an account has no limits. */
  admit(name: string, promptTokens: number, nowMs: number): ShedReason | undefined {
    const found = this.#accounts.get(name);
    if (found === undefined) return undefined;
    const reason = refusalOf(found, nowMs);
    if (reason !== undefined) return reason;
    found.open++;
    found.requests?.spend(1, nowMs);
    found.tokens?.spend(promptTokens, nowMs);
    return undefined;
  }

  /** Tokens of an answer. */
  spend(name: string, tokens: number, nowMs: number): void {
    this.#accounts.get(name)?.tokens?.spend(tokens, nowMs);
  }

  /** A request that was taken in is over. */
  release(name: string): void {
    const found = this.#accounts.get(name);
    // A key may have gone and come back while its request was under way.
    if (found !== undefined && found.open > 0) found.open--;
  }
}

function account(key: ApiKey, before: Account | undefined, nowMs: number): Account {
  const { requestsPerMinute, tokensPerMinute, maxStreams } = key;
  return {
    allowance: { requestsPerMinute, tokensPerMinute, maxStreams },
    requests: bucket(requestsPerMinute, before?.requests, nowMs),
    tokens: bucket(tokensPerMinute, before?.tokens, nowMs),
    open: before?.open ?? 0,
  };
}

function bucket(
  perMinute: number | undefined,
  before: TokenBucket | undefined,
  nowMs: number,
): TokenBucket | undefined {
  if (perMinute === undefined || before?.perMinute === perMinute) return perMinute === undefined ? undefined : before;
  return new TokenBucket(perMinute, nowMs);
}

function refusalOf({ allowance, requests, tokens, open }: Account, nowMs: number): ShedReason | undefined {
  const { maxStreams } = allowance;
  if (maxStreams !== undefined && open >= maxStreams) {
    return refusal("key_streams", "maxStreams", open, maxStreams, STREAM_AGAIN_MS);
  }
  return (
    (requests && overdrawn("key_requests", "requestsPerMinute", requests, nowMs)) ??
    (tokens && overdrawn("key_tokens", "tokensPerMinute", tokens, nowMs))
  );
}

function overdrawn(
  code: "key_requests" | "key_tokens",
  knob: string,
  left: TokenBucket,
  nowMs: number,
): ShedReason | undefined {
  const waitMs = left.waitMs(nowMs);
  if (waitMs === 0) return undefined;
  const used = Math.ceil(left.perMinute - left.level(nowMs));
  return refusal(code, knob, used, left.perMinute, Math.ceil(waitMs));
}

function refusal(
  code: ShedReason["code"],
  knob: string,
  value: number,
  threshold: number,
  retryAfterMs: number,
): ShedReason {
  const message = `this key has used ${value}; its ${knob} is ${threshold}`;
  return { code, knob, value, threshold, retryAfterMs, message };
}
