import type { Registry } from "prom-client";
import { register } from "../metrics/labelled-series.ts";
import { PlainCounter } from "../metrics/plain-counter.ts";

/** What keys use. The labels are names out of the file of keys, so there are no more of them than it has had. */
export class KeyMetrics {
  readonly #requests = new PlainCounter(
    "warmpath_key_requests_total",
    "Requests by API key and by what its limits said: admitted, key_requests, key_tokens or key_streams.",
    ["key", "result"],
  );
  readonly #tokens = new PlainCounter(
    "warmpath_key_tokens_total",
    "Tokens by API key: of the prompts that its limits let in, and of answers.",
    ["key", "kind"],
  );

  constructor(registry: Registry) {
    register(registry, this.#requests);
    register(registry, this.#tokens);
  }

  admitted(key: string, promptTokens: number): void {
    this.#requests.add(1, key, "admitted");
    this.#tokens.add(promptTokens, key, "prompt");
  }

  refused(key: string, code: string): void {
    this.#requests.add(1, key, code);
  }

  answered(key: string, tokens: number): void {
    this.#tokens.add(tokens, key, "output");
  }
}
