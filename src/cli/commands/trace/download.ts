import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { Agent, type Dispatcher, EnvHttpProxyAgent, fetch } from "undici";
import { usage } from "./options.ts";

/** What to download and what it must be. */
export interface Download {
  readonly url: string;
  readonly sha256: string;
  readonly destination: string;
}

/** Silence after which a server counts as gone. */
const LONGEST_SILENCE_MS = 30_000;
/** Far above any public trace: a wrong address must not fill the disk. */
const MOST_BYTES = 1 << 30;

/**
 * Downloads a file and returns its size. The content goes to a temporary file first and takes its name only once its
 * sha256 is right, so a cut connection leaves nothing behind.
 */
export async function download({ url, sha256, destination }: Download): Promise<number> {
  const address = parseAddress(url);
  const partial = `${destination}.${process.pid}.partial`;
  const dispatcher = dispatcherFor(address);
  const hash = createHash("sha256");
  let bytes = 0;
  try {
    await mkdir(dirname(destination), { recursive: true });
    const response = await fetch(address, { dispatcher });
    if (!response.ok || response.body === null) {
      throw usage(`${url} answered ${response.status} ${response.statusText}`.trimEnd());
    }
    const body: AsyncIterable<Uint8Array> = response.body;
    const counted = async function* (): AsyncGenerator<Uint8Array> {
      for await (const chunk of body) {
        bytes += chunk.length;
        if (bytes > MOST_BYTES) throw usage(`${url} is larger than ${MOST_BYTES} bytes, which no public trace is`);
        hash.update(chunk);
        yield chunk;
      }
    };
    await pipeline(counted, createWriteStream(partial));
    const received = hash.digest("hex");
    if (received !== sha256) throw usage(`${url} has sha256 ${received}, expected ${sha256}; nothing was kept`);
    await rename(partial, destination);
    return bytes;
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "WP_INVALID_INPUT") throw cause;
    throw usage(`cannot download ${url}: ${reasonOf(cause)} after ${bytes} bytes; nothing was kept`, cause);
  } finally {
    await rm(partial, { force: true });
    await dispatcher.destroy();
  }
}

function parseAddress(url: string): URL {
  const address = URL.canParse(url) ? new URL(url) : undefined;
  if (address !== undefined && /^https?:$/.test(address.protocol)) return address;
  throw usage(`--url must be an http or https address, got "${url}"`);
}

/** Through the proxy of the environment, if it has one, but never to this machine. */
function dispatcherFor({ hostname }: URL): Dispatcher {
  const limits = { headersTimeout: LONGEST_SILENCE_MS, bodyTimeout: LONGEST_SILENCE_MS };
  return /^(localhost|127\..*|\[::1\])$/.test(hostname) ? new Agent(limits) : new EnvHttpProxyAgent(limits);
}

/** Why, from the innermost cause: `fetch failed` and `terminated` say nothing. */
function reasonOf(error: unknown): string {
  let innermost = error;
  while (innermost instanceof Error && innermost.cause !== undefined) innermost = innermost.cause;
  if (!(innermost instanceof Error)) return String(innermost);
  const { code } = innermost as NodeJS.ErrnoException;
  return innermost.message === "" ? (code ?? innermost.name) : innermost.message;
}
