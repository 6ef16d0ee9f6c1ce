import pc from "picocolors";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { KeyRing } from "../../../gateway/access/key-ring.ts";
import { runCli } from "../../program.ts";
import { parseKeys } from "../gateway/key-file.ts";

async function run(...words: string[]): Promise<{ exitCode: number; printed: string; complaints: string[] }> {
  const printed: string[] = [];
  const complaints: string[] = [];
  const exitCode = await runCli(["key", ...words], {
    colours: pc.createColors(false),
    debug: false,
    print: (line) => printed.push(line),
    printError: (line) => complaints.push(line),
    readStdin: () => Promise.resolve(""),
  });
  return { exitCode, printed: printed.join("\n"), complaints };
}

test("a key opens the gateway whose file has its entry, and every key is another", async () => {
  const { printed } = await run("--name", "team-a", "--tokens-per-minute", "1000");
  const key = /wp-[\w-]{43}/.exec(printed)?.[0];
  const keys = parseKeys(printed.slice(printed.indexOf("- name")), "printed");
  expect(keys).toEqual([{ name: "team-a", sha256: expect.any(String) as string, tokensPerMinute: 1000 }]);
  expect(new KeyRing(keys).nameIn(`Bearer ${key}`)).toBe("team-a");
  expect((await run("--name", "team-a")).printed).not.toContain(key);
});

test("key and entry are printed as JSON for machines", async () => {
  const { key, entry } = parse((await run("--name", "b", "--max-streams", "3", "--json")).printed) as {
    key: string;
    entry: { name: string; sha256: string; maxStreams: number };
  };
  expect(entry).toMatchObject({ name: "b", maxStreams: 3 });
  expect(new KeyRing([entry]).nameIn(`Bearer ${key}`)).toBe("b");
});

test.each([
  [[], /^warmpath key: required option '--name <value>' not specified \(see warmpath key --help\)$/],
  [["--name", "a b"], /^warmpath key: name must be valid: a name of letters/],
  [["--name", "a", "--max-streams", "0"], /^warmpath key: maxStreams must be 1 or more/],
])("%j is one line and exit code 2", async (words, complaint) => {
  const { exitCode, complaints } = await run(...words);
  expect(exitCode).toBe(2);
  expect(complaints).toEqual([expect.stringMatching(complaint)]);
});
