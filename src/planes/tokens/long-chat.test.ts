import { expect, test } from "vitest";
import type { ChatMessage, ChatPrompt } from "../../tokenizer/types.ts";
import { isLongChat } from "./long-chat.ts";

const message: ChatMessage = { role: "user", content: "" };
const chat = (count: number, more: Partial<ChatPrompt> = {}): ChatPrompt => ({
  kind: "chat",
  messages: Array.from({ length: count }, () => message),
  ...more,
});
const parts = Array.from({ length: 5000 }, () => ({ type: "text", text: "a" }));

test("a chat is long by its messages, however short they are", () => {
  expect(isLongChat(chat(500))).toBe(false);
  expect(isLongChat(chat(1000))).toBe(true);
});

test("a chat is long by what is in its messages and tools, and not by its text", () => {
  expect(isLongChat(chat(1, { messages: [{ role: "user", content: "", source: { content: parts } }] }))).toBe(true);
  expect(isLongChat(chat(1, { tools: [{ parameters: { enum: parts } }] }))).toBe(true);
  expect(isLongChat(chat(1, { templateArguments: { given: parts } }))).toBe(true);
  const few = { tools: [{ name: "f", parameters: { type: "object" } }], templateArguments: { enable_thinking: true } };
  expect(isLongChat(chat(100, few))).toBe(false);
  expect(isLongChat(chat(1, { messages: [{ role: "user", content: "word ".repeat(1e6) }] }))).toBe(false);
});
