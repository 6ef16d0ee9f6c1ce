/** Spreads a 32-bit value over all 32 bits (the finalizer of MurmurHash3, public domain). */
export function mix32(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** A 32-bit hash of two values; order matters. */
export function mixPair(a: number, b: number): number {
  return mix32(Math.imul(mix32(a), 0x9e3779b1) ^ b);
}

/** A 32-bit hash of a string, for naming streams and identities; not for block content. */
export function hashString(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return mix32(h);
}

/** Maps 32 random bits to the open interval (0, 1). */
export function unitInterval(bits: number): number {
  return ((bits >>> 0) + 0.5) / 4294967296;
}

/**
 * A seeded generator (sfc32). Streams derived by name or number are independent of how often their parent was used, so
 * that two policies see the same workload and adding a consumer changes nobody else's numbers.
 */
export class Rng {
  readonly #seed: number;
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    this.#seed = seed >>> 0;
    this.#a = mix32(this.#seed ^ 0x9e3779b9);
    this.#b = mix32(this.#seed ^ 0x243f6a88);
    this.#c = mix32(this.#seed ^ 0xb7e15162);
    for (let i = 0; i < 12; i++) this.u32();
  }

  /** 32 uniform bits as an unsigned number. */
  u32(): number {
    const t = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + t) | 0;
    return t >>> 0;
  }

  /** Uniform in (0, 1). */
  uniform(): number {
    return unitInterval(this.u32());
  }

  /** Uniform integer in [0, bound). */
  below(bound: number): number {
    return Math.floor(this.uniform() * bound);
  }

  /** An independent generator, fixed by this one's seed and the name alone. */
  stream(name: string | number): Rng {
    const key = typeof name === "number" ? mix32(name) : hashString(name);
    return new Rng(mixPair(this.#seed, key));
  }
}
