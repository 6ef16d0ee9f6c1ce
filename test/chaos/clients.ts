import { ACCOUNTS, type Account } from "../../src/core/accounts.ts";
import type { Rng } from "../../src/core/rng.ts";
import { brokenOutcome, refusedOutcome } from "../../src/loadgen/outcome.ts";
import { words } from "../support/running-worker.ts";
import { until } from "../support/until.ts";

/** How the client itself saw its requests end, in the accounts that the gateway should have them in. */
export type ClientAccounts = Record<Account, number>;

const TOPICS = 6;
const PREFIX_WORDS = 200;
/** Enough for a stream to last some tenths of a second: whatever happens to a worker happens to streams. */
const ANSWER_TOKENS = 64;
const END_MARK = "data: [DONE]\n\n";

/** Steady load: so many clients, each sending the next request when the last has ended. */
export class SteadyLoad {
  readonly accounts: ClientAccounts = Object.fromEntries(ACCOUNTS.map((account) => [account, 0])) as ClientAccounts;
  /** Streams that began and did not come whole. */
  broken = 0;
  sent = 0;
  readonly #url: string;
  readonly #rng: Rng;
  readonly #clients: Promise<void>[];
  #isStopped = false;

  constructor(url: string, clients: number, rng: Rng) {
    this.#url = url;
    this.#rng = rng;
    this.#clients = Array.from({ length: clients }, () => this.#run());
  }

  /** Resolves once so many more requests have completed: the gateway goes on serving. */
  async moreCompleted(count: number, when: string): Promise<void> {
    const target = this.accounts.completed + count;
    // What a client cannot send at all is thrown here, not lost with its promise.
    const served = until(`${count} requests were served ${when}`, () => this.accounts.completed >= target);
    await Promise.race([served, ...this.#clients]);
    await served;
  }

  /** Sends nothing new and waits for the last answers. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#clients);
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) this.accounts[await this.#request()]++;
  }

  async #request(): Promise<Account> {
    const topic = this.#rng.below(TOPICS);
    const content = `${words(PREFIX_WORDS, `topic${topic}w`)} ${words(1 + this.#rng.below(40), `tail${this.#rng.below(50)}w`)}`;
    this.sent++;
    const response = await fetch(`${this.#url}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({
        model: "llama-3.1-8b",
        stream: true,
        max_tokens: ANSWER_TOKENS,
        messages: [{ role: "user", content }],
      }),
    });
    const text = await response.text();
    if (response.status !== 200) return refusedOutcome(response.status, JSON.parse(text)).account;
    const error = errorIn(text);
    if (error === undefined && text.endsWith(END_MARK)) return "completed";
    this.broken++;
    return brokenOutcome(error).account;
  }
}

/** The error event of a stream, if it has one. */
function errorIn(stream: string): unknown {
  const line = stream.split("\n").find((one) => one.startsWith('data: {"error"'));
  return line === undefined ? undefined : (JSON.parse(line.slice("data: ".length)) as unknown);
}
