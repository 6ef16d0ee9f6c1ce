import { expect, test } from "vitest";
import { WarmpathError } from "../../../core/errors.ts";
import { describeFailure, endOfThread, failureOf } from "./thread-failure.ts";

test("an error is the same on this side of a thread as on the other", () => {
  const ours = new WarmpathError("WP_UNKNOWN_POLICY", "unknown");
  expect(failureOf(describeFailure(ours))).toMatchObject({ code: "WP_UNKNOWN_POLICY", message: "unknown" });
  expect(WarmpathError.isInstance(failureOf(describeFailure(ours)))).toBe(true);
  const full = Object.assign(new Error("no space"), { code: "ENOSPC", syscall: "write", errno: -28 });
  expect(failureOf(describeFailure(full))).toMatchObject({ code: "ENOSPC", syscall: "write" });
  const odd = failureOf(describeFailure("odd"));
  expect(odd.message).toBe("odd");
  expect(WarmpathError.isInstance(odd)).toBe(false);
});

test("a thread without memory says what can be done about it, in one line", () => {
  const error = endOfThread(Object.assign(new Error("heap"), { code: "ERR_WORKER_OUT_OF_MEMORY" }));
  expect(error.code).toBe("WP_INVALID_INPUT");
  expect(error.message).toMatch(/^a thread ran out of memory: run fewer at a time \(--threads\), .*$/);
});
