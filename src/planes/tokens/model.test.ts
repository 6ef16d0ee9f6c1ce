import { afterEach, describe, expect, test, vi } from "vitest";
import { trainedFile } from "../../../test/support/model-files.ts";
import { ByteBpe } from "../../tokenizer/bpe/byte-bpe.ts";
import { readTokenizerJson } from "../../tokenizer/bpe/tokenizer-json.ts";
import { ModelTokenizer } from "../../tokenizer/model-tokenizer.ts";
import type { ChatPrompt } from "../../tokenizer/types.ts";
import { ModelTokens, type PassageEncoder } from "./model.ts";
import { TokenizerThread } from "./model/thread.ts";

const definition = readTokenizerJson(trainedFile("she sells sea shells by the sea shore ".repeat(4), 40));
const bpe = new ByteBpe(definition);
const chatTemplate = {
  template: "{% for m in messages %}{{ m.role }}: {{ m.content | trim }}\n{% endfor %}{{ tools | tojson }}",
  specialTokens: {},
};
const chat = (messages: number): ChatPrompt => ({
  kind: "chat",
  messages: Array.from({ length: messages }, (_, i) => ({ role: "user", content: ` sea ${i}` })),
  tools: [{ name: "f" }],
});
const LONG = "She sells shells. ".repeat(8_000);
const text = (content: string): { kind: "text"; text: string } => ({ kind: "text", text: content });
const ENTRY = new URL("../../../test/support/tokenizer-thread.mjs", import.meta.url);
const thread = (): TokenizerThread => new TokenizerThread({ definition, chatTemplate }, ENTRY);

afterEach(() => vi.restoreAllMocks());

/** An encoder that answers when told to. */
class Held implements PassageEncoder {
  readonly asked: (readonly string[])[] = [];
  #release: (() => void)[] = [];
  #failure: Error | undefined;

  encode(passages: readonly string[]): Promise<readonly Uint32Array[]> {
    this.asked.push(passages);
    const tokens = passages.map((passage) => bpe.encodePlain(passage));
    return new Promise((resolve, reject) => {
      this.#release.push(() => (this.#failure === undefined ? resolve(tokens) : reject(this.#failure)));
    });
  }

  release(failure?: Error): void {
    this.#failure = failure;
    for (const answer of this.#release.splice(0)) answer();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

describe("a model's tokens", () => {
  test("are there at once for prompts with little new text", () => {
    const tokens = new ModelTokens({ definition, elsewhere: new Held() });
    expect(tokens.tokensOf(text("She sells."))).toEqual(bpe.encode("She sells."));
    expect(tokens.counts.offloaded).toBe(0);
  });

  test("let other prompts pass while long new text is tokenized elsewhere", async () => {
    const elsewhere = new Held();
    const tokens = new ModelTokens({ definition, elsewhere });
    const events: string[] = [];
    const long = Promise.resolve(tokens.tokensOf(text(LONG))).then((result) => {
      events.push("long");
      return result;
    });
    expect(tokens.tokensOf(text("short"))).toBeInstanceOf(Uint32Array);
    events.push("short");
    elsewhere.release();
    expect(await long).toEqual(bpe.encode(LONG));
    expect(events).toEqual(["short", "long"]);
    expect(tokens.counts.offloaded).toBe(1);
  });

  test("count only text that is new", async () => {
    const elsewhere = new Held();
    const tokens = new ModelTokens({ definition, elsewhere });
    const first = tokens.tokensOf(text(LONG));
    elsewhere.release();
    await first;
    const longer = `${LONG}And then some more.`;
    expect(tokens.tokensOf(text(longer))).toEqual(bpe.encode(longer));
    expect(elsewhere.asked).toHaveLength(1);
  });

  test("are made here if nobody else can", async () => {
    const elsewhere = new Held();
    const tokens = new ModelTokens({ definition, elsewhere });
    const long = tokens.tokensOf(text(LONG));
    elsewhere.release(new Error("gone"));
    expect(await long).toEqual(bpe.encode(LONG));
  });
});

describe("the tokenizer's thread", () => {
  test("leaves the work of long texts off this thread, and gives the same tokens", async () => {
    await using tokens = new ModelTokens({ definition, elsewhere: thread() });
    const expected = bpe.encode(LONG);
    const here = vi.spyOn(ByteBpe.prototype, "encodePlain");
    const promised = tokens.tokensOf(text(LONG));
    expect(promised).toBeInstanceOf(Promise);
    expect(await promised).toEqual(expected);
    expect(here.mock.calls.length).toBe(0);
    expect(tokens.counts.offloaded).toBe(1);
  });

  test("writes chats of very many messages too, however little text they are, and gives the same tokens", async () => {
    await using tokens = new ModelTokens({ definition, chatTemplate, wholeElsewhere: thread() });
    const expected = new ModelTokenizer({ definition, chatTemplate }).encode(chat(1000));
    const here = vi.spyOn(ModelTokenizer.prototype, "outline");
    expect(await tokens.tokensOf(chat(1000))).toEqual(expected);
    expect([here.mock.calls.length, tokens.counts.offloaded]).toEqual([0, 1]);
    expect(tokens.tokensOf(chat(10))).toBeInstanceOf(Uint32Array);
  });

  test("does all of a text that is cut into very many scraps, which would all be new to this one", async () => {
    await using tokens = new ModelTokens({ definition, wholeElsewhere: thread() });
    const scraps = text("sea<|im_end|>".repeat(5000));
    const expected = bpe.encode(scraps.text);
    const promised = tokens.tokensOf(scraps);
    expect(promised).toBeInstanceOf(Promise);
    expect(await promised).toEqual(expected);
    expect(tokens.tokensOf(text("sea<|im_end|>".repeat(500)))).toBeInstanceOf(Uint32Array);
  });

  test("is not needed for a chat that it cannot be asked for", async () => {
    const gone = { encodePrompt: () => Promise.reject(new Error("gone")), close: () => Promise.resolve() };
    const tokens = new ModelTokens({ definition, chatTemplate, elsewhere: new Held(), wholeElsewhere: gone });
    const expected = new ModelTokenizer({ definition, chatTemplate }).encode(chat(1000));
    expect(await tokens.tokensOf(chat(1000))).toEqual(expected);
  });

  test("fails what it had not done when it is closed, and starts again when asked", async () => {
    const worker = thread();
    const job = worker.encode([LONG]);
    await Promise.all([worker.close(), expect(job).rejects.toThrow("the tokenizer was closed")]);
    expect(await worker.encode(["sea", "shells"])).toEqual([bpe.encodePlain("sea"), bpe.encodePlain("shells")]);
    await worker.close();
  });

  test("fails for a text that cannot be tokenized, and for nobody else who waits", async () => {
    const worker = thread();
    const none = worker.encode([undefined as unknown as string]);
    const other = worker.encode(["sea"]);
    await expect(none).rejects.toThrow("not tokenized: TypeError");
    expect(await other).toEqual([bpe.encodePlain("sea")]);
    await worker.close();
  });

  test("fails what it had not done when it dies", async () => {
    const worker = new TokenizerThread({ definition: { ...definition, patterns: ["("] } }, ENTRY);
    await expect(worker.encode(["sea"])).rejects.toThrow("the pattern ( cannot be used");
    await worker.close();
  });
});
