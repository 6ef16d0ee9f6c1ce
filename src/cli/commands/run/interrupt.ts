const IMPATIENCE_MS = 1000;

/**
 * Ends the run on the first interrupt and the process on a later one; a signal that is sent twice at once is one. Where
 * things must be put back first, which `say` is given for, it takes one more.
 */
export function interruptHandler(interrupt: AbortController, say?: (line: string) => void): () => void {
  let lastMs: number | undefined;
  let patience = say === undefined ? 0 : 1;
  return () => {
    const nowMs = performance.now();
    if (lastMs !== undefined && nowMs - lastMs > IMPATIENCE_MS) {
      if (patience === 0) process.exit(130);
      patience -= 1;
      lastMs = nowMs;
      say?.("stopping, and putting everything back; once more does not wait for it");
    }
    lastMs ??= nowMs;
    interrupt.abort();
  };
}
