import { createServer } from "node:net";
import { once } from "node:events";
import { WarmpathError } from "../../core/errors.ts";

const MOST_TRIED = 100;

/** Listens on a port, or on the first one after it that is free; 0 takes any. */
export async function listenOnNextFree<T>(port: number, listen: (port: number) => Promise<T>): Promise<T> {
  for (let tried = port; ; tried++) {
    try {
      return await listen(tried);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "EADDRINUSE" || tried - port >= MOST_TRIED) {
        throw new WarmpathError("WP_INVALID_INPUT", `no port from ${port} on can be listened on (${code})`, {
          cause: error,
        });
      }
    }
  }
}

/** A port that is free now, from `port` on and not among those taken already; for processes that are yet to start. */
export async function nextFreePort(port: number, host: string, taken: ReadonlySet<number>): Promise<number> {
  let first = port;
  while (taken.has(first)) first++;
  return listenOnNextFree(first, async (tried) => {
    if (taken.has(tried)) throw Object.assign(new Error("taken"), { code: "EADDRINUSE" });
    const server = createServer().listen(tried, host);
    await once(server, "listening");
    server.close();
    await once(server, "close");
    return tried;
  });
}
