import { createHash, timingSafeEqual } from "node:crypto";

/** What follows `Bearer` in an `authorization` header; undefined where nothing does. */
export function bearerOf(header: string | undefined): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1];
}

export function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** One secret that callers must send. */
export class BearerToken {
  #digest: Buffer;

  constructor(token: string) {
    this.#digest = sha256(token);
  }

  replace(token: string): void {
    this.#digest = sha256(token);
  }

  /** Takes the same time whether the token is nearly right or not at all. */
  isIn(header: string | undefined): boolean {
    const token = bearerOf(header);
    // Digests have one length, which the comparison needs, and say nothing about the token's.
    return token !== undefined && timingSafeEqual(sha256(token), this.#digest);
  }
}
