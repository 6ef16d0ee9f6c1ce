import { Pool, buildConnector } from "undici";
import type { RequestPlane, Upstream as WorkerUpstream } from "../planes/request/types.ts";
import { ReadBodies } from "./read-bodies.ts";

export interface UpstreamsOptions {
  /** How long it may take to reach a worker. */
  readonly connectMs: number;
}

interface Upstream {
  readonly pool: Pool;
  readonly way: WorkerUpstream;
  usedMs: number;
}

/** Connections to a worker that nothing was sent to for so long are given up with it. */
const IDLE_MS = 300_000;

/** More than clients may send: some of theirs, such as an id, comes back with those that engines add. */
const MAX_HEADER_BYTES = 64 * 1024;

/** The request plane over HTTP: kept-alive connections to workers, by origin. */
export class Upstreams implements RequestPlane {
  readonly #options: UpstreamsOptions;
  readonly #upstreams = new Map<string, Upstream>();
  readonly #bodies = new ReadBodies();

  constructor(options: UpstreamsOptions) {
    this.#options = options;
  }

  get(origin: string): WorkerUpstream {
    let upstream = this.#upstreams.get(origin);
    if (upstream === undefined) {
      // Deadlines for answers are the exchange's: what is late depends on the request, and a paused stream is not late.
      const limits = { headersTimeout: 0, bodyTimeout: 0, maxHeaderSize: MAX_HEADER_BYTES };
      const pool = new Pool(origin, { ...limits, connect: this.#connector() });
      upstream = { pool, way: this.#wayOver(pool), usedMs: 0 };
      this.#upstreams.set(origin, upstream);
    }
    upstream.usedMs = performance.now();
    return upstream.way;
  }

  /** Gives up the connections to workers that have left. */
  prune(nowMs: number): void {
    for (const [origin, { pool, usedMs }] of this.#upstreams) {
      if (nowMs - usedMs < IDLE_MS || pool.stats.running > 0) continue;
      this.#upstreams.delete(origin);
      void pool.close();
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#upstreams.values()].map(({ pool }) => pool.destroy()));
    this.#upstreams.clear();
  }

  #wayOver(pool: Pool): WorkerUpstream {
    return {
      dispatch: ({ bodyRead, ...request }, handler) => {
        const { body } = request;
        const sent = bodyRead === undefined ? body : this.#bodies.expected(body, bodyRead);
        return pool.dispatch({ ...request, body: sent }, handler);
      },
    };
  }

  #connector(): buildConnector.connector {
    const connect = buildConnector({ timeout: this.#options.connectMs });
    return (options, done) =>
      connect(options, (...[error, socket]) => {
        if (error === null) {
          this.#bodies.watch(socket);
          done(null, socket);
        } else done(error, null);
      });
  }
}
