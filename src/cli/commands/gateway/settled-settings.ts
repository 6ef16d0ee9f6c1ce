import { type Introduction, askForDescription } from "../../../planes/discovery/parts/self-description.ts";
import type { GatewaySettings, WrittenSettings } from "./settings.ts";
import { workersFrom } from "./worker-option.ts";

const DEFAULT_BLOCK_TOKENS = 16;

/**
 * Settles what was left open by asking the workers that were named: how many tokens their blocks have, and what their tokens
 * are. Only our own workers answer. Who registers is one of them, and cannot be asked before it comes.
 */
export async function settled(
  written: WrittenSettings,
  ask: (url: string) => Promise<Introduction> = askForDescription,
): Promise<{ settings: GatewaySettings; notes: readonly string[] }> {
  const { blockTokens, tokenizer, discover } = written;
  if (blockTokens !== undefined && tokenizer !== "auto") {
    return { settings: { ...written, blockTokens, tokenizer }, notes: [] };
  }
  const workers = workersFrom(written.worker);
  const answers = await Promise.all(workers.map(async ({ url }) => ({ url, answer: await ask(url) })));
  const described = answers.flatMap(({ url, answer }) =>
    answer.kind === "described" ? [{ url, ...answer.description }] : [],
  );
  const [first] = described;
  const theirs = tokensOf(first) ?? (discover === "registration" ? "word" : "none");
  const settings = {
    ...written,
    blockTokens: blockTokens ?? first?.worker.blockTokens ?? DEFAULT_BLOCK_TOKENS,
    tokenizer: tokenizer === "auto" ? theirs : tokenizer,
  };
  const isGuessing = tokenizer === "auto" && theirs === "none" && written.eventPlane !== "none";
  const note = "no tokenizer is known for these workers, so their caches are guessed from text; see --tokenizer";
  return { settings, notes: isGuessing ? [note] : [] };
}

/** The built-in tokens can be made here; all others are asked of the worker that makes them. */
function tokensOf(described: { url: string; tokenizer: string | undefined } | undefined): string | undefined {
  if (described?.tokenizer === undefined || described.tokenizer === "word") return described?.tokenizer;
  return `vllm+${described.url}`;
}
