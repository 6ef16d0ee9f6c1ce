import { Template } from "@huggingface/jinja";
import { hashString } from "../../core/rng.ts";
import type { ChatMessage, ChatPrompt } from "../types.ts";
import { MessageWriter } from "./message-writer.ts";
import { ShapeWriter } from "./shape-writer.ts";

type Json = Readonly<Record<string, unknown>>;

/** A template and the texts of the special tokens that it may name: `bos_token` and so on. */
export interface ChatTemplateSource {
  readonly template: string;
  readonly specialTokens: Readonly<Record<string, string>>;
}

/** Templates that walk through a message's parts by themselves; all others expect a text. */
const READS_PARTS = /\bin\s+(?:message|msg|m)(?:\.content|\[\s*['"]content['"]\s*\])/;

/** Up to here a chat is written as a whole faster than by what is new in it. */
const SHORT_CHAT_MESSAGES = 8;

/** Writes chats as a model's own template does, with what engines do to messages before that. */
export class ChatTemplate {
  readonly #template: Template;
  readonly #shapes: ShapeWriter | undefined;
  readonly #writer: MessageWriter | undefined;
  readonly #specialTokens: Readonly<Record<string, string>>;
  readonly #readsParts: boolean;

  constructor({ template, specialTokens }: ChatTemplateSource) {
    this.#template = new Template(template);
    this.#shapes = ShapeWriter.for(template);
    this.#writer = MessageWriter.for(template);
    this.#specialTokens = specialTokens;
    this.#readsParts = READS_PARTS.test(template);
  }

  /** The chat as text; undefined if the template refuses it, as an engine would. */
  render(prompt: ChatPrompt): string | undefined {
    if (prompt.continuesFinalMessage) return this.#continued(prompt);
    const { messages, tools, templateArguments, addsGenerationPrompt = true } = prompt;
    const context = {
      ...this.#specialTokens,
      tools: tools === undefined || tools.length === 0 ? null : tools,
      documents: null,
      add_generation_prompt: addsGenerationPrompt,
      ...templateArguments,
    };
    const contextKey = keyOf(prompt);
    try {
      const copied = this.#shapes?.write(messages, context, contextKey);
      if (copied !== undefined) return copied;
      if (messages.length > SHORT_CHAT_MESSAGES && this.#writer !== undefined) {
        const writable = messages.map((message) => ({
          ...identityOf(message),
          message: this.#asEnginesSeeIt(message),
        }));
        const text = this.#writer.write(writable, context, contextKey);
        if (text !== undefined) return text;
      }
      return this.#template.render({ ...context, messages: messages.map((message) => this.#asEnginesSeeIt(message)) });
    } catch {
      return undefined;
    }
  }

  /** As engines do it: the header of an answer, and the beginning of the answer behind it. */
  #continued(open: ChatPrompt): string | undefined {
    const { messages, continuesFinalMessage: _, ...prompt } = open;
    const asked = this.render({ ...prompt, messages: messages.slice(0, -1), addsGenerationPrompt: true });
    return asked === undefined ? undefined : asked + (messages.at(-1)?.content ?? "");
  }

  #asEnginesSeeIt({ role, content, source }: ChatMessage): Json {
    if (source === undefined) return { role, content };
    const message: Record<string, unknown> = { ...source, content: this.#contentOf(source["content"], content) };
    if (Array.isArray(source["tool_calls"])) message["tool_calls"] = source["tool_calls"].map(withParsedArguments);
    return message;
  }

  #contentOf(content: unknown, text: string): unknown {
    if (content === undefined || content === null) return "";
    if (!Array.isArray(content)) return typeof content === "string" ? content : text;
    return this.#readsParts ? content : content.map(partText).join("\n");
  }
}

/** Equal for chats that a template cannot tell apart but by their messages. */
function keyOf({ tools, templateArguments, addsGenerationPrompt = true }: ChatPrompt): string {
  if (tools === undefined && templateArguments === undefined) return addsGenerationPrompt ? "+" : "-";
  return JSON.stringify([tools, templateArguments, addsGenerationPrompt]);
}

/** Equal for messages that a template cannot tell apart. */
function identityOf({ role, content, source }: ChatMessage): { kind: string; text: string } {
  if (source === undefined) return { kind: `plain ${role}`, text: content };
  const isPlain = Object.keys(source).join() === "role,content" && typeof source["content"] === "string";
  if (isPlain) return { kind: `plain ${role}`, text: source["content"] as string };
  return { kind: "json", text: JSON.stringify(source) };
}

/** Engines put a placeholder for what is not text; ours tells two images apart. */
function partText(part: unknown): string {
  const { type, text } = (typeof part === "object" && part !== null ? part : {}) as { type?: unknown; text?: unknown };
  if (typeof text === "string") return text;
  return `<${String(type)} ${hashString(JSON.stringify(part)).toString(16)}>`;
}

/** Clients send the arguments of a call as JSON in a string; templates get what is in it. */
function withParsedArguments(call: unknown): unknown {
  const named = (call as { function?: Json } | null)?.function;
  const given = named?.["arguments"];
  if (typeof given !== "string") return call;
  try {
    return { ...(call as Json), function: { ...named, arguments: JSON.parse(given) as unknown } };
  } catch {
    return call;
  }
}
