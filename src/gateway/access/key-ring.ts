import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { ApiKey } from "./api-key.ts";
import { bearerOf, sha256 } from "./bearer-token.ts";

interface KnownKey {
  readonly name: string;
  readonly digest: Buffer;
}

/**
 * The keys that may ask. A key is looked for under a hash that nobody outside this process can compute, so that the time of
 * the search tells nothing about the keys there are, however many.
 */
export class KeyRing {
  readonly #secret = randomBytes(32);
  #keys: ReadonlyMap<string, KnownKey> = new Map();

  constructor(keys: readonly ApiKey[]) {
    this.replace(keys);
  }

  replace(keys: readonly ApiKey[]): void {
    this.#keys = new Map(
      keys.map((key) => {
        const digest = Buffer.from(key.sha256, "hex");
        return [this.#blinded(digest), { name: key.name, digest }];
      }),
    );
  }

  /** The name of the key in an `authorization` header; undefined if there is none that is known. */
  nameIn(header: string | undefined): string | undefined {
    const token = bearerOf(header);
    if (token === undefined) return undefined;
    const digest = sha256(token);
    const known = this.#keys.get(this.#blinded(digest));
    return known !== undefined && timingSafeEqual(known.digest, digest) ? known.name : undefined;
  }

  #blinded(digest: Buffer): string {
    return createHmac("sha256", this.#secret).update(digest).digest("base64");
  }
}
