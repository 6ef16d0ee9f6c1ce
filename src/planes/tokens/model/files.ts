import { readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { WarmpathError } from "../../../core/errors.ts";
import type { ChatTemplateSource } from "../../../tokenizer/template/chat-template.ts";
import { readTokenizerJson } from "../../../tokenizer/bpe/tokenizer-json.ts";
import type { ModelTokenizerOptions } from "../../../tokenizer/model-tokenizer.ts";

type Json = Readonly<Record<string, unknown>>;

/** The names of special tokens that templates use. */
const SPECIAL_TOKENS = ["bos_token", "eos_token", "unk_token", "pad_token"];

/** Reads `tokenizer.json`, by its own name or its folder's, and the chat template beside it. */
export async function readModelFiles(path: string): Promise<Omit<ModelTokenizerOptions, "cacheChars">> {
  const folder = await folderOf(path);
  const file = folder === path ? join(folder, "tokenizer.json") : path;
  const definition = readTokenizerJson(await readJson(file));
  const chatTemplate = await readChatTemplate(folder);
  return { definition, ...(chatTemplate !== undefined && { chatTemplate }) };
}

/** Reads the template from `tokenizer_config.json`, or from `chat_template.jinja` where newer models have it. */
export async function readChatTemplate(path: string): Promise<ChatTemplateSource | undefined> {
  const folder = await folderOf(path);
  const config = ((await readIfThere(join(folder, "tokenizer_config.json"), readJson)) ?? {}) as Json;
  const alone = await readIfThere(join(folder, "chat_template.jinja"), (file) => readFile(file, "utf8"));
  const template = alone ?? templateOf(config["chat_template"]);
  if (template === undefined) return undefined;
  const specialTokens: Record<string, string> = {};
  for (const name of SPECIAL_TOKENS) {
    const token = config[name];
    const content = typeof token === "object" && token !== null ? (token as Json)["content"] : token;
    if (typeof content === "string") specialTokens[name] = content;
  }
  return { template, specialTokens };
}

/** A model may have several templates by name; the default one is what chats use. */
function templateOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return undefined;
  const found = (value as readonly Json[]).find(({ name }) => name === "default")?.["template"];
  return typeof found === "string" ? found : undefined;
}

async function folderOf(path: string): Promise<string> {
  const found = await stat(path).catch((cause: unknown) => {
    throw new WarmpathError("WP_INVALID_INPUT", `tokenizer: there is no file or folder ${path}`, { cause });
  });
  return found.isDirectory() ? path : dirname(path);
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as unknown;
  } catch (cause) {
    const problem = cause instanceof SyntaxError ? "is not JSON" : "cannot be read";
    throw new WarmpathError("WP_INVALID_INPUT", `tokenizer: ${file} ${problem}`, { cause });
  }
}

async function readIfThere<T>(file: string, read: (file: string) => Promise<T>): Promise<T | undefined> {
  const isThere = await stat(file).then(
    () => true,
    () => false,
  );
  return isThere ? read(file) : undefined;
}
