const LOOK_MS = 20;

/** Resolves when something has come true, looked at again and again; false if it was told to stop before. */
export function waitUntil(isTrue: () => boolean, signal: AbortSignal, lookMs: number = LOOK_MS): Promise<boolean> {
  return new Promise((resolve) => {
    const look = (): void => {
      const came = isTrue();
      if (!came && !signal.aborted) return;
      clearInterval(timer);
      signal.removeEventListener("abort", look);
      resolve(came);
    };
    const timer = setInterval(look, lookMs);
    signal.addEventListener("abort", look);
    look();
  });
}
