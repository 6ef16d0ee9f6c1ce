import { Template } from "@huggingface/jinja";
import { BoundedCache } from "../bounded-cache.ts";
import type { ChatMessage } from "../types.ts";
import { searchedTexts } from "./copied-content.ts";

type Json = Readonly<Record<string, unknown>>;

/** How a template writes every chat of the same roles: texts of its own, and between them what messages say. */
interface Shape {
  readonly opening: string;
  readonly copies: readonly Copy[];
}

/** One message's content, and the template's text after it. */
interface Copy {
  readonly message: number;
  readonly isStrippedBefore: boolean;
  readonly isStrippedAfter: boolean;
  readonly after: string;
}

/** Around what stands for content: shows on which sides a template strips it. No template writes a space like this one. */
const RARE_SPACE = "\u2003";
const BEFORE = `\n${RARE_SPACE}\t`;
const AFTER = `\t${RARE_SPACE}\n`;
const STAND_IN = new RegExp(`(${BEFORE})?\\u0000(\\d+)\\u0000(${AFTER})?`, "g");
const DEFAULT_CACHE_CHARS = 4 * 1024 * 1024;

/**
 * Writes chats with a template that only copies content, without running it: for every order of roles the template is run
 * once, on stand-ins for content. See copied-content.ts for which templates these are.
 */
export class ShapeWriter {
  readonly #template: Template;
  readonly #searched: readonly string[];
  readonly #shapes = new BoundedCache<Shape | "unusable">(DEFAULT_CACHE_CHARS);

  private constructor(template: Template, searched: readonly string[]) {
    this.#template = template;
    this.#searched = searched;
  }

  /** A writer for a template, if it is one that only copies content. */
  static for(source: string): ShapeWriter | undefined {
    const template = new Template(source);
    const searched = searchedTexts(template.parsed.body);
    return searched === undefined ? undefined : new ShapeWriter(template, searched);
  }

  /** The chat as text, or undefined if the template has to be run; throws what the template throws. */
  write(messages: readonly ChatMessage[], context: Json, contextKey: string): string | undefined {
    let key = contextKey;
    for (const message of messages) {
      if (!this.#isCopied(message)) return undefined;
      key += `\u0000${message.content === "" ? "-" : "+"}${message.role}`;
    }
    let shape = this.#shapes.get(key);
    if (shape === undefined) {
      shape = this.#learn(messages, context);
      this.#shapes.set(key, shape, key.length + lengthOf(shape));
    }
    return shape === "unusable" ? undefined : filledIn(shape, messages);
  }

  /** Content that is nothing but space looks empty where it is stripped, and one with a searched text is looked into. */
  #isCopied({ role, content, source }: ChatMessage): boolean {
    if (source !== undefined || role.includes("\u0000")) return false;
    if (content !== "" && content.trim() === "") return false;
    return !this.#isSearched(content);
  }

  #isSearched(content: string): boolean {
    return this.#searched.some((text) => content.includes(text));
  }

  #learn(messages: readonly ChatMessage[], context: Json): Shape | "unusable" {
    const standIns = messages.map(({ role, content }, i) => ({
      role,
      content: content === "" ? "" : `${BEFORE}\u0000${i}\u0000${AFTER}`,
    }));
    if (standIns.some(({ content }) => this.#isSearched(content))) return "unusable";
    const text = this.#template.render({ ...context, messages: standIns });
    const found = [...text.matchAll(STAND_IN)];
    const textAfter = (i: number): string =>
      text.slice(found[i].index + found[i][0].length, found[i + 1]?.index ?? text.length);
    const copies = found.map(([, before, message, after], i): Copy => {
      const [isStrippedBefore, isStrippedAfter] = [before === undefined, after === undefined];
      return { message: Number(message), isStrippedBefore, isStrippedAfter, after: textAfter(i) };
    });
    const opening = text.slice(0, found[0]?.index ?? text.length);
    const isStrippedInPart = [opening, ...copies.map(({ after }) => after)].some((own) => own.includes(RARE_SPACE));
    return isStrippedInPart ? "unusable" : { opening, copies };
  }
}

function filledIn({ opening, copies }: Shape, messages: readonly ChatMessage[]): string {
  let text = opening;
  for (const { message, isStrippedBefore, isStrippedAfter, after } of copies) {
    let { content } = messages[message];
    if (isStrippedBefore) content = content.trimStart();
    if (isStrippedAfter) content = content.trimEnd();
    text += content + after;
  }
  return text;
}

function lengthOf(shape: Shape | "unusable"): number {
  return shape === "unusable"
    ? 0
    : shape.copies.reduce((sum, { after }) => sum + after.length + 16, shape.opening.length);
}
