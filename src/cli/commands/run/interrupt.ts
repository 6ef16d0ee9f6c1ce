const IMPATIENCE_MS = 1000;

/** Ends the run on the first interrupt and the process on a later one; a signal that is sent twice at once is one. */
export function interruptHandler(interrupt: AbortController): () => void {
  let firstMs: number | undefined;
  return () => {
    if (firstMs !== undefined && performance.now() - firstMs > IMPATIENCE_MS) process.exit(130);
    firstMs ??= performance.now();
    interrupt.abort();
  };
}
