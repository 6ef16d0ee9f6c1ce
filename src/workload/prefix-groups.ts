import { WarmpathError } from "../core/errors.ts";
import type { Rng } from "../core/rng.ts";
import { drawBetween, type Range, spreadOver, ZipfChoice } from "./draw.ts";
import type { SessionScript, SessionSupply } from "./request.ts";

/** Single requests that fall into groups with a common prefix. */
export interface PrefixGroupParameters {
  readonly groups: number;
  readonly prefixTokens: Range;
  /** Zipf exponent of how often each group is asked for; 0 is equally often. */
  readonly skew: number;
  /** Tokens of its own behind the prefix, per request. */
  readonly suffixTokens: Range;
  readonly outputTokens: Range;
  /** So many requests in a row ask for the same group; each chooses by itself unless told. */
  readonly groupRun?: number | undefined;
}

const FIRST_OWN_SEGMENT = 2 ** 24;

/** Requests of prefix groups without end, or as many as told; request n is fixed by the seed and n alone. */
export class PrefixGroups implements SessionSupply {
  readonly parameters: PrefixGroupParameters;
  readonly #rng: Rng;
  readonly #runs: Rng;
  readonly #prefixTokens: readonly number[];
  readonly #choice: ZipfChoice;
  readonly #requests: number;

  constructor(parameters: PrefixGroupParameters, rng: Rng, requests: number = Infinity) {
    checkPrefixGroupParameters(parameters);
    this.parameters = parameters;
    this.#rng = rng.stream("prefix-group-requests");
    this.#runs = rng.stream("prefix-group-runs");
    this.#requests = requests;
    this.#prefixTokens = spreadOver(rng.stream("prefixes"), parameters.groups, parameters.prefixTokens);
    this.#choice = new ZipfChoice(parameters.groups, parameters.skew);
  }

  session(ordinal: number): SessionScript | undefined {
    if (ordinal >= this.#requests) return undefined;
    const rng = this.#rng.stream(ordinal);
    const { groupRun = 1 } = this.parameters;
    const group = this.#choice.draw(groupRun === 1 ? rng : this.#runs.stream(Math.floor(ordinal / groupRun)));
    const suffixTokens = drawBetween(rng, this.parameters.suffixTokens);
    const outputTokens = drawBetween(rng, this.parameters.outputTokens);
    const ownId = FIRST_OWN_SEGMENT + 2 * ordinal;
    const segments = [
      { id: group, tokens: this.#prefixTokens[group] },
      { id: ownId, tokens: suffixTokens },
    ];
    return {
      session: ordinal,
      name: `group-${group}`,
      turns: [
        { requestId: ordinal, prompt: { kind: "append", segments }, outputTokens, answerId: ownId + 1, thinkNs: 0 },
      ],
    };
  }
}

/** Throws with one line that names the first parameter that cannot be. */
export function checkPrefixGroupParameters(parameters: PrefixGroupParameters): void {
  const { groups, skew, prefixTokens, suffixTokens, outputTokens, groupRun = 1 } = parameters;
  if (!(Number.isInteger(groups) && groups >= 1)) refuse("groups must be a whole number, 1 or more", groups);
  if (!(Number.isInteger(groupRun) && groupRun >= 1)) refuse("groupRun must be a whole number, 1 or more", groupRun);
  if (!(skew >= 0 && skew < Infinity)) refuse("skew must be 0 or more", skew);
  for (const [name, range] of Object.entries({ prefixTokens, suffixTokens, outputTokens })) {
    const [least, most] = range;
    if (!(Number.isInteger(least) && Number.isInteger(most) && least >= 0 && most >= least)) {
      refuse(`${name} must be two whole numbers, the lower first`, range);
    }
  }
  if (prefixTokens[0] + suffixTokens[0] < 1) refuse("prefixTokens and suffixTokens must not both begin at 0", 0);
  if (outputTokens[0] < 1) refuse("outputTokens must begin at 1 or more", outputTokens);
}

function refuse(requirement: string, value: unknown): never {
  throw new WarmpathError("WP_INVALID_INPUT", `${requirement}, got ${JSON.stringify(value)}`);
}
