import { afterEach, describe, expect, test } from "vitest";
import { type ScriptedEndpoint, startScriptedEndpoint } from "../../../test/support/scripted-endpoint.ts";
import { BuiltInUser } from "./built-in.ts";
import { EndpointUser } from "./endpoint.ts";

const answer =
  "A B-tree keeps its keys sorted in wide nodes. Splitting a node moves its median key into the parent. " +
  "Because nodes are as large as a page, a lookup touches few pages even in a very large table.";
const read = { session: 4, turn: 1, topic: "B-trees", answer };

describe("the built-in user", () => {
  test("asks about what the answer said", () => {
    for (let session = 0; session < 40; session++) {
      const question = new BuiltInUser(1).followUp({ ...read, session });
      const words = question.toLowerCase().match(/[a-z-]{5,}/g) ?? [];
      const shared = words.filter((word) => answer.toLowerCase().includes(word));
      expect(shared).not.toEqual([]);
      expect(question).toMatch(/[?.]$/);
    }
  });

  test("says the same to the same answer, and other things in other conversations, turns and seeds", () => {
    const ask = (seed: number, session: number, turn: number): string =>
      new BuiltInUser(seed).followUp({ ...read, session, turn });
    expect(ask(1, 4, 1)).toBe(ask(1, 4, 1));
    const questions = Array.from({ length: 20 }, (_, at) => ask(at % 3, at, at % 5));
    expect(new Set(questions).size).toBeGreaterThan(10);
  });

  test("quotes answers that have no sentences, and copes with an empty one", () => {
    const words = Array.from({ length: 60 }, (_, at) => `word${at}`).join(" ");
    expect(new BuiltInUser(1).followUp({ ...read, answer: words })).toMatch(/word\d/);
    expect(new BuiltInUser(1).followUp({ ...read, answer: "" })).toContain("B-trees");
  });
});

describe("a user played by an endpoint", () => {
  let endpoint: ScriptedEndpoint | undefined;
  let user: EndpointUser | undefined;

  afterEach(async () => {
    await user?.close();
    await endpoint?.close();
  });

  async function userOf(status: number, reply: object): Promise<EndpointUser> {
    endpoint = await startScriptedEndpoint(({ response }) => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(reply));
    });
    user = new EndpointUser({ url: `${endpoint.url}/v1`, model: "small", seed: 3, apiKey: "key" });
    return user;
  }

  test("is shown the answer and asks what the model says", async () => {
    const small = await userOf(200, { choices: [{ message: { content: " Why the median key? " } }] });
    expect(await small.followUp(read, new AbortController().signal)).toBe("Why the median key?");
    const [{ path, headers, body }] = endpoint?.requests ?? [];
    expect({ path, authorization: headers.authorization }).toEqual({
      path: "/v1/chat/completions",
      authorization: "Bearer key",
    });
    expect(body).toMatchObject({ model: "small", max_tokens: 96, seed: 3 + 64 * 4 + 1 });
    expect(JSON.stringify(body["messages"])).toContain("median key into the parent");
  });

  test.each([
    [500, {}, /answered with 500/],
    [200, { choices: [{ message: { content: "" } }] }, /said nothing/],
  ])("rejects if there is no question to be had (%i)", async (status, reply, message) => {
    const small = await userOf(status, reply);
    await expect(small.followUp(read, new AbortController().signal)).rejects.toThrow(message);
  });

  test("is left alone when the run ends", async () => {
    endpoint = await startScriptedEndpoint(() => {});
    user = new EndpointUser({ url: endpoint.url, model: "small", seed: 3 });
    const end = new AbortController();
    const asked = user.followUp(read, end.signal);
    await endpoint.came(1);
    end.abort();
    await expect(asked).rejects.toThrow(/aborted/);
  });
});
