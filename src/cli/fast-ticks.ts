import { executionAsyncResource } from "node:async_hooks";

let kept: Promise<object> | undefined;

/**
 * Keeps `process.nextTick` fast, which every read and every write of a stream calls. Node makes an object of every tick, all of one
 * shape; a full collection at a moment when no tick waits forgets the shape, and the code that was compiled for it is slow from
 * then on, for good (`npm run bench -- ticks`). One such object, kept, keeps their shape. Resolves with it.
 */
export function keepTicksFast(): Promise<object> {
  kept ??= new Promise((resolve) => {
    process.nextTick(() => resolve(executionAsyncResource()));
  });
  return kept;
}
