import type { DiscoveryWatch } from "../types.ts";

/** Looks now and then every so often, one look at a time; resolves after the first. */
export async function lookRepeatedly(look: () => Promise<void>, intervalMs: number): Promise<Required<DiscoveryWatch>> {
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> = Promise.resolve();
  const next = (): void => {
    if (isClosed) return;
    timer = setTimeout(() => {
      looking = looking.then(look).finally(next);
    }, intervalMs);
    timer.unref();
  };
  await look();
  next();
  return {
    look: () => (looking = looking.then(look)),
    close: async () => {
      isClosed = true;
      clearTimeout(timer);
      await looking;
    },
  };
}
