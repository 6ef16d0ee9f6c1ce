import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import pc from "picocolors";
import { describe, expect, onTestFinished, test } from "vitest";
import { fileTree } from "../../../../test/support/file-tree.ts";
import { requireData } from "../../../../test/support/required-component.ts";
import { runCli } from "../../program.ts";
import { download } from "./download.ts";

const CONTENT = "0123456789".repeat(50_000);
const SHA256 = createHash("sha256").update(CONTENT).digest("hex");

/** The address of a local server that is gone when the test is over. */
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function run(words: readonly string[]): Promise<{ code: number; out: string; errors: string[] }> {
  const out: string[] = [];
  const errors: string[] = [];
  const code = await runCli(["trace", "fetch", ...words], {
    colours: pc.createColors(false),
    debug: false,
    print: (line) => void out.push(line),
    printError: (line) => void errors.push(line),
    readStdin: () => Promise.resolve(""),
  });
  return { code, out: out.join("\n"), errors };
}

describe("a download", () => {
  test("arrives whole, in a folder that is made for it", async () => {
    const url = await serve((_, response) => void response.end(CONTENT));
    const destination = join(fileTree({}), "new", "file");
    expect(await download({ url, sha256: SHA256, destination })).toBe(CONTENT.length);
    expect(readFileSync(destination, "utf8")).toBe(CONTENT);
    expect(readdirSync(join(destination, ".."))).toEqual(["file"]);
  });

  test("follows a redirect", async () => {
    const url = await serve((request, response) => {
      if (request.url === "/there") response.end(CONTENT);
      else response.writeHead(302, { location: "/there" }).end();
    });
    expect(await download({ url, sha256: SHA256, destination: join(fileTree({}), "file") })).toBe(CONTENT.length);
  });

  test.each([
    [
      "other content",
      (_, response) => void response.end("other"),
      /has sha256 [0-9a-f]{64}, expected .*; nothing was kept$/,
    ],
    ["an error page", (_, response) => void response.writeHead(404).end("no"), /^http:\S+ answered 404 Not Found$/],
    [
      "a cut connection",
      (_, response) => {
        response.writeHead(200, { "content-length": String(CONTENT.length) });
        response.write(CONTENT.slice(0, 1000), () => response.destroy());
      },
      /^cannot download http:\S+: .+ after 1000 bytes; nothing was kept$/,
    ],
    ["a connection cut at once", (request) => request.socket.destroy(), /^cannot download http:\S+: .+ after 0 bytes/],
  ] as [string, RequestListener, RegExp][])(
    "that meets %s leaves nothing and says why",
    async (_, listener, message) => {
      const url = await serve(listener);
      const folder = fileTree({ file: "as it was" });
      await expect(download({ url, sha256: SHA256, destination: join(folder, "file") })).rejects.toThrow(message);
      expect(readdirSync(folder)).toEqual(["file"]);
      expect(readFileSync(join(folder, "file"), "utf8")).toBe("as it was");
    },
  );

  test.each(["nowhere", "ftp://example.org/x"])("from %s is refused", async (url) => {
    const destination = join(fileTree({}), "file");
    await expect(download({ url, sha256: SHA256, destination })).rejects.toThrow(
      `--url must be an http or https address, got "${url}"`,
    );
  });
});

describe("warmpath trace fetch", () => {
  test("downloads a public trace from a mirror, once", async (context) => {
    const content = readFileSync(requireData(context, "traces/conversation_trace.jsonl"));
    let requests = 0;
    const url = await serve((_, response) => {
      requests++;
      response.end(content);
    });
    const out = join(fileTree({}), "conversation.jsonl");
    const first = await run(["conversation", "--url", url, "--out", out, "--json"]);
    expect(first.errors).toEqual([`downloading ${url}`]);
    expect(JSON.parse(first.out)).toMatchObject({ name: "conversation", file: out, rows: 12_031, downloaded: true });
    expect(readFileSync(out).equals(content)).toBe(true);
    const again = await run(["conversation", "--url", url, "--out", out]);
    expect(again.out).toContain("was there already: 12031 rows");
    expect(requests).toBe(1);
  });

  test("refuses what a mirror changed, with one line and exit code 2", async () => {
    const url = await serve((_, response) => void response.end(CONTENT));
    const out = join(fileTree({}), "toolagent.jsonl");
    const { code, errors } = await run(["toolagent", "--url", url, "--out", out]);
    expect(code).toBe(2);
    expect(errors.at(-1)).toMatch(/^warmpath trace fetch: http:\S+ has sha256 \S+, expected 48a2db1a/);
    expect(existsSync(out)).toBe(false);
  });

  test("does not replace another file unless forced", async () => {
    const url = await serve((_, response) => void response.end(CONTENT));
    const out = join(fileTree({}), "mine.jsonl");
    writeFileSync(out, "mine");
    const refused = await run(["synthetic", "--url", url, "--out", out]);
    expect([refused.code, refused.errors]).toEqual([
      2,
      [expect.stringMatching(/exists with other content .*; --force replaces it$/)],
    ]);
    const forced = await run(["synthetic", "--url", url, "--out", out, "--force"]);
    expect(forced.errors.at(-1)).toContain("nothing was kept");
    expect(readFileSync(out, "utf8")).toBe("mine");
  });
});
