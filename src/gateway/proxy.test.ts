import type { Dispatcher } from "undici";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { Attempt, type AttemptListener } from "./proxy.ts";

/** A listener that notes what it hears; `isFull` is a client that does not read. */
class Notes implements AttemptListener {
  readonly heard: string[] = [];
  isFull = false;

  sent(): void {
    this.heard.push("sent");
  }
  streamed(_headers: object, chunk: Uint8Array, tokens: number): boolean {
    this.heard.push(`${chunk.length} bytes, ${tokens} tokens`);
    return !this.isFull;
  }
  streamEnded({ isDone, hasError }: { isDone: boolean; hasError: boolean }): void {
    this.heard.push(isDone && !hasError ? "whole stream" : "cut stream");
  }
  whole({ status, body }: { status: number; body: Uint8Array }): void {
    this.heard.push(`${status} ${Buffer.from(body).toString()}`);
  }
  failed(error: Error): void {
    this.heard.push(`failed: ${error.message}`);
  }
}

/** An attempt whose connection is played by the test. */
function attempt(): { notes: Notes; made: Attempt; calls: string[]; controller: Dispatcher.DispatchController } {
  const notes = new Notes();
  const calls: string[] = [];
  const controller = {
    pause: () => calls.push("pause"),
    resume: () => calls.push("resume"),
    abort: () => calls.push("abort"),
  } as unknown as Dispatcher.DispatchController;
  return { notes, made: new Attempt(notes), calls, controller };
}

const EVENT = Buffer.from('data: {"choices":[{"text":"x"}]}\n\n');
const DONE = Buffer.from("data: [DONE]\n\n");
const STREAM_HEADERS = { "content-type": "text/event-stream; charset=utf-8" };

describe("an attempt on a worker", () => {
  test("pauses the worker while the client does not read, and lets it go on afterwards", () => {
    const { notes, made, calls, controller } = attempt();
    made.onRequestStart(controller);
    made.onResponseStart(controller, 200, STREAM_HEADERS);
    made.onResponseData(controller, EVENT);
    expect(calls).toEqual([]);
    notes.isFull = true;
    made.onResponseData(controller, EVENT);
    expect(calls).toEqual(["pause"]);
    made.resume();
    expect(calls).toEqual(["pause", "resume"]);
  });

  test("ends a stream as whole only if it has its end mark and no error", () => {
    const endings = ["", "data: [DONE]\n\n", 'data: {"error":{"message":"m"}}\n\ndata: [DONE]\n\n'].map((end) => {
      const { notes, made, controller } = attempt();
      made.onRequestStart(controller);
      made.onResponseStart(controller, 200, STREAM_HEADERS);
      made.onResponseData(controller, Buffer.concat([EVENT, Buffer.from(end)]));
      made.onResponseEnd();
      return notes.heard.at(-1);
    });
    expect(endings).toEqual(["cut stream", "whole stream", "cut stream"]);
  });

  test("takes the end mark for the end, and what follows for nothing", () => {
    const { notes, made, calls, controller } = attempt();
    made.onRequestStart(controller);
    made.onResponseStart(controller, 200, STREAM_HEADERS);
    made.onResponseData(controller, Buffer.concat([EVENT, DONE]));
    const heard = [...notes.heard];
    expect(heard.at(-1)).toBe("whole stream");
    made.onResponseData(controller, EVENT);
    made.onResponseError(controller, new Error("gone"));
    expect(notes.heard).toEqual(heard);
    expect(calls).toEqual([]);
  });

  test("gives a worker time to end its answer after the end mark, and not for ever", () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    for (const ends of [true, false]) {
      const { made, calls, controller } = attempt();
      made.onRequestStart(controller);
      made.onResponseStart(controller, 200, STREAM_HEADERS);
      made.onResponseData(controller, DONE);
      if (ends) made.onResponseEnd();
      vi.advanceTimersByTime(10_000);
      expect(calls).toEqual(ends ? [] : ["abort"]);
    }
  });

  test.each([
    ["reads on", (made: Attempt) => made.resume()],
    [
      "has not read on when the worker breaks off",
      (made: Attempt, controller: unknown) => made.onResponseError(controller, new Error("gone")),
    ],
  ])("ends a stream whose end mark is unread when the client %s", (_what, goOn) => {
    const { notes, made, calls, controller } = attempt();
    made.onRequestStart(controller);
    made.onResponseStart(controller, 200, STREAM_HEADERS);
    notes.isFull = true;
    made.onResponseData(controller, DONE);
    expect(notes.heard).toHaveLength(2);
    expect(calls).toEqual(["pause"]);
    goOn(made, controller);
    expect(notes.heard.at(-1)).toBe("whole stream");
    made.onResponseEnd();
    expect(notes.heard).toHaveLength(3);
  });

  test("collects what is no stream", () => {
    const { notes, made, controller } = attempt();
    made.onRequestStart(controller);
    made.onResponseStart(controller, 503, { "content-type": "application/json" });
    for (const part of ["{", "}"]) made.onResponseData(controller, Buffer.from(part));
    expect(notes.heard).toEqual(["sent"]);
    made.onResponseEnd();
    expect(notes.heard).toEqual(["sent", "503 {}"]);
  });

  test("keeps an event back whose end never comes", () => {
    const { notes, made, controller } = attempt();
    made.onRequestStart(controller);
    made.onResponseStart(controller, 200, STREAM_HEADERS);
    made.onResponseData(controller, EVENT.subarray(0, 9));
    made.onResponseError(controller, new Error("gone"));
    expect(notes.heard).toEqual(["sent", "failed: gone"]);
  });

  test.each([
    ["an answer", { "content-type": "application/json" }, 65, "the answer has no end"],
    ["an event", STREAM_HEADERS, 5, "an event of the stream has no end"],
  ])("gives up on %s that has no end", (_what, headers, megabytes, reason) => {
    const { notes, made, calls, controller } = attempt();
    made.onRequestStart(controller);
    made.onResponseStart(controller, 200, headers);
    const megabyte = Buffer.alloc(1024 * 1024, "x");
    for (let i = 0; i < megabytes; i++) made.onResponseData(controller, megabyte);
    made.onResponseEnd();
    expect(calls).toEqual(["abort"]);
    expect(notes.heard).toEqual(["sent", `failed: ${reason}`]);
  });

  test("tells nothing more once given up, even if it was not sent yet", () => {
    const { notes, made, calls, controller } = attempt();
    made.abort();
    made.onRequestStart(controller);
    made.onResponseError(controller, new Error("aborted"));
    expect(calls).toEqual(["abort"]);
    expect(notes.heard).toEqual([]);
  });
});
