const POLL_MS = 25;
const PATIENCE_MS = 30_000;

/** Resolves once something holds; throws, naming what was waited for, if it does not come about. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  patienceMs: number = PATIENCE_MS,
): Promise<void> {
  const deadlineMs = performance.now() + patienceMs;
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(`waited ${patienceMs / 1000} s in vain until ${what}`);
    await new Promise((resolve) => {
      setTimeout(resolve, POLL_MS);
    });
  }
}
