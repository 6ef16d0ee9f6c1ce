import type { WrittenPrompt } from "./types.ts";

/** Longer text takes long to be looked through, though nothing in it be new. */
const MOST_CHARS = 1_000_000;

/**
 * What a template is run for on the event loop. It is an interpreter: it takes as long for a message, however short, as the tokenizer
 * for a page, and about as long for ten values inside of messages and tools.
 */
const MOST_VALUES = 4096;
const VALUES_OF_MESSAGE = 8;

/**
 * Whether a prompt takes longer than others can wait for, whatever is known of it already: a chat may take its template long,
 * however little text there is in it.
 */
export function isLongPrompt(prompt: WrittenPrompt): boolean {
  if (prompt.kind === "text") return prompt.text.length > MOST_CHARS;
  const { messages, tools, templateArguments } = prompt;
  const room = new Room(MOST_VALUES - VALUES_OF_MESSAGE * messages.length);
  let chars = 0;
  for (let i = 0; i < messages.length && !room.isUsedUp; i++) {
    const { content, source } = messages[i];
    chars += content.length;
    if (source !== undefined) room.take(source);
  }
  if (chars > MOST_CHARS) return true;
  if (tools !== undefined) room.take(tools);
  if (templateArguments !== undefined) room.take(templateArguments);
  return room.isUsedUp;
}

/** Room for so many values; nothing is counted beyond it. */
class Room {
  #values: number;

  constructor(values: number) {
    this.#values = values;
  }

  get isUsedUp(): boolean {
    return this.#values < 0;
  }

  take(value: object): void {
    const open: object[] = [value];
    for (let nest = open.pop(); nest !== undefined && !this.isUsedUp; nest = open.pop()) {
      const inner: readonly unknown[] = Array.isArray(nest) ? nest : Object.values(nest);
      this.#values -= inner.length;
      for (const each of inner) if (typeof each === "object" && each !== null) open.push(each);
    }
  }
}
