import { dirname } from "node:path";
import { describe, expect, test } from "vitest";
import { fileTree } from "../../test/support/file-tree.ts";
import { qwenFile, trainedFile } from "../../test/support/model-files.ts";
import { createTokens, tokensOptions } from "./prompt-tokens.ts";

const HELLO = { kind: "chat", messages: [{ role: "user", content: "Hello" }] } as const;

describe("where tokens come from", () => {
  test.each([
    ["none", { kind: "none" }],
    ["word", { kind: "word" }],
    ["models/qwen", { kind: "file", path: "models/qwen" }],
    ["http://engine:8000", { kind: "remote", dialect: "vllm", url: "http://engine:8000" }],
    ["vllm+http://engine:8000,model=m", { kind: "remote", dialect: "vllm", url: "http://engine:8000", model: "m" }],
    [
      "sglang+http://engine:30000,template=models/qwen",
      { kind: "remote", dialect: "sglang", url: "http://engine:30000", templatePath: "models/qwen" },
    ],
  ])("is read from %s", (text, options) => {
    expect(tokensOptions(text)).toEqual(options);
  });

  test("can be the files of a real model, by file or folder", async () => {
    for (const path of [qwenFile("tokenizer.json"), dirname(qwenFile("tokenizer.json"))]) {
      const tokens = await createTokens({ kind: "file", path });
      const system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";
      const written = `<|im_start|>system\n${system}<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n`;
      expect(await tokens.tokensOf(HELLO)).toEqual(await tokens.tokensOf({ kind: "text", text: written }));
      await tokens.close();
    }
  });

  test("can be a folder with the template in a file of its own, and special tokens as objects", async () => {
    const folder = fileTree({
      "tokenizer.json": JSON.stringify(trainedFile("hello hello", 3)),
      "tokenizer_config.json": JSON.stringify({ bos_token: { content: "<|im_start|>" } }),
      "chat_template.jinja": "{{ bos_token }}{{ messages[0].content }}",
    });
    const tokens = await createTokens({ kind: "file", path: folder });
    expect(await tokens.tokensOf(HELLO)).toEqual(await tokens.tokensOf({ kind: "text", text: "<|im_start|>Hello" }));
    await tokens.close();
  });

  test("says whether they are the engine's own", async () => {
    expect((await createTokens({ kind: "none" })).fidelity).toBe("approximate");
    expect((await createTokens({ kind: "word" })).fidelity).toBe("exact");
  });

  test.each([
    ["a path that is not there", { kind: "file", path: "/nowhere" }, "no file or folder /nowhere"],
    ["SGLang without a template", { kind: "remote", dialect: "sglang", url: "http://x" }, "takes no chats"],
  ] as const)("refuses %s", async (_, options, message) => {
    await expect(createTokens(options)).rejects.toThrow(message);
  });

  test("refuses a file that is no JSON, by name", async () => {
    const folder = fileTree({ "tokenizer.json": "{" });
    await expect(createTokens({ kind: "file", path: folder })).rejects.toThrow("tokenizer.json is not JSON");
  });
});
