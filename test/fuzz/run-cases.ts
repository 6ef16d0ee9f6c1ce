import { Rng } from "../../src/core/rng.ts";
import { mutated } from "./mutation.ts";
import type { FuzzedParser } from "./parsers.ts";

export interface FuzzFailure {
  readonly parser: string;
  /** The seed that repeats the failure, as the first and only case. */
  readonly seed: number;
  readonly input: string;
  readonly error: unknown;
}

/** Feeds a parser with so many inputs; case `n` depends on `seed + n` alone. */
export async function runCases(
  parser: FuzzedParser,
  cases: number,
  seed: number,
  /** Told of every case before it runs, so that one that never ends has a name. */
  started: (seed: number) => void = () => undefined,
): Promise<FuzzFailure | undefined> {
  for (let i = 0; i < cases; i++) {
    const rng = new Rng(seed + i).stream(parser.name);
    const bytes = mutated(rng, parser.corpus);
    started(seed + i);
    try {
      const waited = parser.parse(bytes, rng);
      if (waited !== undefined) await waited;
    } catch (error) {
      return { parser: parser.name, seed: seed + i, input: Buffer.from(bytes).toString("base64"), error };
    }
  }
  return undefined;
}

/** How to see a failure again. */
export function describeFailure({ parser, seed, input, error }: FuzzFailure): string {
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return `${parser}: npm run fuzz -- --parser ${parser} --seed ${seed} --cases 1\ninput (base64): ${input}\n${reason}`;
}
