/** The tokenizer's thread from its source: a thread of a test loads no TypeScript by itself. */
import { register } from "tsx/esm/api";

register();
await import("../../src/planes/tokens/model/thread-entry.ts");
