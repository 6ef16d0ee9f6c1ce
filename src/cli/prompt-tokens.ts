import { WarmpathError } from "../core/errors.ts";
import { InlineTokens } from "../planes/tokens/inline.ts";
import { ModelTokens } from "../planes/tokens/model.ts";
import { readChatTemplate, readModelFiles } from "../planes/tokens/model/files.ts";
import { RemoteTokens, type TokenizeDialect } from "../planes/tokens/remote.ts";
import type { PromptTokens } from "../planes/tokens/types.ts";
import { TextChunkTokenizer } from "../tokenizer/text-chunk-tokenizer.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";

/** Where a gateway's tokens come from. */
export type TokensOptions =
  /** Nothing is known of the model: chunks of text stand for tokens. */
  | { readonly kind: "none" }
  /** Simulated fleets. */
  | { readonly kind: "word" }
  /** A model's `tokenizer.json`, or the folder it lies in with its `tokenizer_config.json`. */
  | { readonly kind: "file"; readonly path: string }
  /** An engine's `/tokenize`. */
  | {
      readonly kind: "remote";
      readonly url: string;
      readonly dialect: TokenizeDialect;
      readonly model?: string;
      /** A folder with the model's chat template; SGLang's endpoint needs it for chats. */
      readonly templatePath?: string;
    };

const REMOTE = /^(?:(vllm|sglang)\+)?(https?:\/\/[^,]+)(?:,template=([^,]+))?(?:,model=([^,]+))?$/;

/**
 * Reads what a `--tokenizer` flag says: `none`, `word`, a path, or an engine's address as `vllm+http://…` or
 * `sglang+http://…,template=FOLDER`, with `,model=NAME` where the engine serves several.
 */
export function tokensOptions(text: string): TokensOptions {
  if (text === "none" || text === "word") return { kind: text };
  const remote = REMOTE.exec(text);
  if (remote === null) return { kind: "file", path: text };
  const [, dialect = "vllm", url, templatePath, model] = remote as readonly (string | undefined)[];
  return {
    kind: "remote",
    dialect: dialect as TokenizeDialect,
    url: url ?? "",
    ...(templatePath !== undefined && { templatePath }),
    ...(model !== undefined && { model }),
  };
}

/**
 * Makes the source of tokens that the options name; problems with files are thrown here, not at the first prompt. An engine that is
 * asked for them is sent `authorization`.
 *
 * @example
 * const tokens = await createTokens(tokensOptions("models/qwen"));
 * const promptTokens = await tokens.tokensOf({ kind: "text", text: "Hello" });
 */
export async function createTokens(
  options: TokensOptions,
  authorization?: () => string | undefined,
): Promise<PromptTokens> {
  switch (options.kind) {
    case "none":
      return new InlineTokens(new TextChunkTokenizer(), "approximate");
    case "word":
      return new InlineTokens(new WordTokenizer(), "exact");
    case "file":
      return new ModelTokens(await readModelFiles(options.path));
    case "remote": {
      const { templatePath, kind: _, ...remote } = options;
      const chatTemplate = templatePath === undefined ? undefined : await readChatTemplate(templatePath);
      if (remote.dialect === "sglang" && chatTemplate === undefined) {
        const problem = "SGLang's /tokenize takes no chats: name the folder with the model's chat template";
        throw new WarmpathError("WP_INVALID_INPUT", `tokenizer: ${problem}`);
      }
      return new RemoteTokens({ ...remote, authorization, ...(chatTemplate !== undefined && { chatTemplate }) });
    }
  }
}
