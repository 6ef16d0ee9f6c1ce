import { request } from "undici";
import type { DiscoveredWorker } from "./types.ts";

export interface RegistrationOptions {
  /** Where the registry answers, for example the gateway's admin listener. */
  readonly registryUrl: string;
  readonly worker: DiscoveredWorker;
  readonly leaseSeconds: number;
  /** What the registry asks for, where it asks for a token. */
  readonly token?: string | undefined;
  /** The registry could not be told; it is tried again. */
  readonly problem?: (message: string) => void;
}

/** Renewals in one lease: two may fail before it ends. */
const RENEWALS_PER_LEASE = 3;
/** An answer that takes longer than a renewal is of no use. */
const LONGEST_ANSWER_MS = 5000;

/** Announces a worker to a registry and keeps its lease until closed. */
export class Registration {
  readonly #options: RegistrationOptions;
  readonly #url: string;
  readonly #renewMs: number;
  #timer: NodeJS.Timeout | undefined;
  #renewing: Promise<boolean> | undefined;
  #isClosed = false;
  #lastProblem: string | undefined;

  constructor(options: RegistrationOptions) {
    this.#options = options;
    this.#url = `${options.registryUrl.replace(/\/+$/, "")}/register`;
    this.#renewMs = (options.leaseSeconds * 1000) / RENEWALS_PER_LEASE;
  }

  /** Announces the worker and resolves to whether that worked; renewals go on either way. */
  async start(): Promise<boolean> {
    this.#renewing = this.#announce();
    const isTold = await this.#renewing;
    this.#renewLater();
    return isTold;
  }

  /** Gives the lease back, so that nobody waits for it to end. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#renewing;
    await this.#send("DELETE", `${this.#url}/${encodeURIComponent(this.#options.worker.name)}`);
  }

  #renewLater(): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#renewing = this.#announce().finally(() => this.#renewLater());
    }, this.#renewMs);
    this.#timer.unref();
  }

  #announce(): Promise<boolean> {
    const { worker, leaseSeconds } = this.#options;
    return this.#send("POST", this.#url, JSON.stringify({ ...worker, leaseSeconds }));
  }

  async #send(method: "POST" | "DELETE", url: string, body?: string): Promise<boolean> {
    const answerMs = Math.min(this.#renewMs, LONGEST_ANSWER_MS);
    const { token } = this.#options;
    const headers = {
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    };
    try {
      const answer = await request(url, {
        method,
        headersTimeout: answerMs,
        bodyTimeout: answerMs,
        headers,
        ...(body !== undefined && { body }),
      });
      const text = await answer.body.text();
      if (answer.statusCode === 200) {
        this.#lastProblem = undefined;
        return true;
      }
      this.#problem(`${method} ${url} was answered with ${answer.statusCode}: ${text}`);
    } catch (error) {
      this.#problem(`${method} ${url}: ${(error as Error).message}`);
    }
    return false;
  }

  /** Once while it stays the same, and not about the last word of a worker that leaves. */
  #problem(message: string): void {
    if (this.#isClosed || message === this.#lastProblem) return;
    this.#lastProblem = message;
    this.#options.problem?.(message);
  }
}
