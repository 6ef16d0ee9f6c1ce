import { createHash } from "node:crypto";
import type { PromptProof } from "../results/types.ts";

const HASH_CHARACTERS = 16;

/** What one cell has sent: a hash of every prompt, by the id of its request. */
export type SentPrompts = ReadonlyMap<string, string>;

/** Keeps what the cells of an experiment have sent, so that arms can be shown to have got the same prompts. */
export class PromptLedger {
  readonly #byRun = new Map<number, Map<string, string>>();

  /** Holds a cell's prompts against those of the cells before it, and keeps them. */
  add(run: number, sent: SentPrompts, isInWindow: (id: string) => boolean): PromptProof {
    const before = this.#byRun.get(run) ?? new Map<string, string>();
    this.#byRun.set(run, before);
    let sentBefore = 0;
    let equalToBefore = 0;
    for (const [id, hash] of sent) {
      const known = before.get(id);
      if (known === undefined) before.set(id, hash);
      else {
        sentBefore += 1;
        if (known === hash) equalToBefore += 1;
      }
    }
    const own = [...sent].filter(([id]) => isInWindow(id)).toSorted(([a], [b]) => Number(a) - Number(b));
    const digest = createHash("sha256");
    for (const [id, hash] of own) digest.update(`${id} ${hash}\n`);
    return { requests: own.length, digest: `sha256:${digest.digest("hex")}`, sentBefore, equalToBefore };
  }
}

/** The hash of a prompt as it is sent. */
export function promptHash(json: string): string {
  return createHash("sha256").update(json).digest("hex").slice(0, HASH_CHARACTERS);
}
