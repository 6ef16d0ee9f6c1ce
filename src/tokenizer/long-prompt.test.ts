import { expect, test } from "vitest";
import type { ChatMessage, ChatPrompt } from "./types.ts";
import { isLongPrompt } from "./long-prompt.ts";

const message: ChatMessage = { role: "user", content: "" };
const chat = (count: number, more: Partial<ChatPrompt> = {}): ChatPrompt => ({
  kind: "chat",
  messages: Array.from({ length: count }, () => message),
  ...more,
});
const parts = Array.from({ length: 5000 }, () => ({ type: "text", text: "a" }));

test("a chat is long by its messages, however short they are", () => {
  expect(isLongPrompt(chat(500))).toBe(false);
  expect(isLongPrompt(chat(1000))).toBe(true);
});

test("a chat is long by what is in its messages and tools", () => {
  expect(isLongPrompt(chat(1, { messages: [{ role: "user", content: "", source: { content: parts } }] }))).toBe(true);
  expect(isLongPrompt(chat(1, { tools: [{ parameters: { enum: parts } }] }))).toBe(true);
  expect(isLongPrompt(chat(1, { templateArguments: { given: parts } }))).toBe(true);
  const few = { tools: [{ name: "f", parameters: { type: "object" } }], templateArguments: { enable_thinking: true } };
  expect(isLongPrompt(chat(100, few))).toBe(false);
});

test("a prompt is long by its text, where that is longer than almost any context", () => {
  const text = (words: number): string => "word ".repeat(words);
  expect(isLongPrompt({ kind: "text", text: text(100_000) })).toBe(false);
  expect(isLongPrompt({ kind: "text", text: text(300_000) })).toBe(true);
  expect(isLongPrompt(chat(1, { messages: [{ role: "user", content: text(100_000) }] }))).toBe(false);
  const halves = [text(150_000), text(150_000)].map((content) => ({ role: "user", content }));
  expect(isLongPrompt(chat(1, { messages: halves }))).toBe(true);
});
