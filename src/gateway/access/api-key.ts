/** What a key may ask for; what is absent is not bounded. */
export interface KeyAllowance {
  readonly requestsPerMinute?: number | undefined;
  /** Of prompts and of answers together. */
  readonly tokensPerMinute?: number | undefined;
  /** Requests under way at once. */
  readonly maxStreams?: number | undefined;
}

/** A key as it is kept: nobody can be asked for the key itself. */
export interface ApiKey extends KeyAllowance {
  /** Who it belongs to, in metrics and salts. Two keys of one name share its allowance, so that one can replace the other. */
  readonly name: string;
  /** Of the key, in hexadecimal digits. A key is 256 bits of chance, so that no salt and no slow hash is needed. */
  readonly sha256: string;
}

/** What a key begins with, so that one that got lost can be recognised. */
export const KEY_PREFIX = "wp-";
