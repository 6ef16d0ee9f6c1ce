import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ROOT_HI, ROOT_LO, chainHashes, hashText } from "../../core/hash.ts";
import type { BlockCache, BlockCacheOptions, CacheListener, Holding } from "./block-cache.ts";
import { NaiveCache } from "./naive-cache.ts";
import { RunCache } from "./run-cache.ts";

/** A sequence whose blocks have these contents; equal beginnings give equal hashes. */
function sequenceOf(contents: readonly number[]): Uint32Array {
  const local = Uint32Array.from(contents.flatMap((content) => [content + 1, (content + 1) * 7]));
  const out = new Uint32Array(local.length);
  chainHashes(local, contents.length, ROOT_LO, ROOT_HI, out);
  return out;
}

class Transcript implements CacheListener {
  readonly lines: string[] = [];
  stored(sequence: Uint32Array, from: number, to: number): void {
    for (let at = from; at < to; at++) this.lines.push(`+${hashText(sequence[2 * at], sequence[2 * at + 1])}`);
  }
  removed(sequence: Uint32Array, from: number, to: number): void {
    for (let at = to - 1; at >= from; at--) this.lines.push(`-${hashText(sequence[2 * at], sequence[2 * at + 1])}`);
  }
}

type Command =
  | { kind: "admit"; blocks: number[]; extra: number; useHits: number }
  | { kind: "publish"; which: number; more: number }
  | { kind: "grow"; which: number }
  | { kind: "release"; which: number };

const commandArbitrary: fc.Arbitrary<Command> = fc.oneof(
  fc.record({
    kind: fc.constant("admit" as const),
    // Few contents and a common stem make prefixes collide, nest and part.
    blocks: fc.array(fc.nat({ max: 1 }), { minLength: 1, maxLength: 8, size: "max" }),
    extra: fc.nat({ max: 2 }),
    useHits: fc.oneof(fc.constant(9), fc.nat({ max: 9 })),
  }),
  fc.record({ kind: fc.constant("publish" as const), which: fc.nat(), more: fc.integer({ min: 1, max: 9 }) }),
  fc.record({ kind: fc.constant("publish" as const), which: fc.nat(), more: fc.constant(9) }),
  fc.record({ kind: fc.constant("grow" as const), which: fc.nat() }),
  fc.record({ kind: fc.constant("release" as const), which: fc.nat() }),
);

/** Drives one cache through the commands and writes down all that can be seen of it. */
function transcript(
  create: (options: BlockCacheOptions, listener: CacheListener) => BlockCache,
  options: BlockCacheOptions,
  commands: readonly Command[],
): string[] {
  const heard = new Transcript();
  const cache = create(options, heard);
  const held: { holding: Holding; sequence: Uint32Array }[] = [];
  for (const command of commands) {
    if (command.kind === "admit") {
      const sequence = sequenceOf(command.blocks);
      const match = cache.match(sequence, command.blocks.length);
      heard.lines.push(`match ${match.blocks} ${match.unreferenced}`);
      // An engine may use fewer blocks than it found.
      const hits = Math.min(match.blocks, command.useHits);
      const exact = cache.match(sequence, hits);
      const wanted = command.blocks.length - hits + command.extra;
      if (wanted + exact.unreferenced > cache.available) continue;
      const holding = cache.hold(sequence, hits);
      cache.allocate(holding, wanted);
      held.push({ holding, sequence });
    } else if (held.length > 0) {
      const index = command.which % held.length;
      const { holding, sequence } = held[index];
      if (command.kind === "publish") {
        const most = Math.min(sequence.length / 2, holding.published + holding.unpublished);
        cache.publish(holding, sequence, Math.min(most, holding.published + command.more));
      } else if (command.kind === "grow") {
        if (cache.available > 0) cache.allocate(holding, 1);
      } else {
        cache.release(holding);
        held.splice(index, 1);
      }
    }
    heard.lines.push(
      `room ${cache.available} held ${cache.heldBlocks} used ${cache.usedBlocks} gone ${cache.evictedBlocks}`,
    );
  }
  const contents = cache
    .contents()
    .flatMap(([sequence, from, to]) =>
      Array.from({ length: to - from }, (_, i) => hashText(sequence[2 * (from + i)], sequence[2 * (from + i) + 1])),
    );
  return [...heard.lines, ...contents.sort()];
}

describe("a cache of runs", () => {
  for (const duplicates of ["perCopyEvents", "firstLastCopyEvents"] as const) {
    it(`finds, stores and gives up exactly what a block-by-block cache does (${duplicates})`, () => {
      fc.assert(
        fc.property(
          fc.integer({ min: 6, max: 40 }),
          fc.array(commandArbitrary, { maxLength: 120, size: "max" }),
          (poolBlocks, commands) => {
            const options: BlockCacheOptions = { poolBlocks, duplicates };
            const runs = transcript((o, l) => new RunCache(o, l), options, commands);
            const naive = transcript((o, l) => new NaiveCache(o, l), options, commands);
            expect(runs).toEqual(naive);
          },
        ),
        { numRuns: 800 },
      );
    });
  }
});
