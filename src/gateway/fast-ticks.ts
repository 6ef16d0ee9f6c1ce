import { executionAsyncResource } from "node:async_hooks";

/** What Node made of a tick: it only has to exist. */
let keptTick: object | undefined;

/**
 * Keeps `process.nextTick` fast, which every read and every write of a stream calls. Node makes an object of every tick, all of one
 * shape; a full collection at a moment when no tick is waiting forgets the shape, and the compiled code that knew it takes five
 * times as long from then on, for good. As long as one such object is kept, so is their shape.
 */
export function keepTicksFast(): void {
  if (keptTick !== undefined) return;
  process.nextTick(() => {
    keptTick = executionAsyncResource();
  });
}
