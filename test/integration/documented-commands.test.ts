import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { expect, test } from "vitest";
import { createCommands } from "../../src/cli/program.ts";
import type { Terminal } from "../../src/cli/terminal.ts";
import { exampleLines, shellLines, warmpathCalls } from "../support/command-lines.ts";
import { markdownFiles } from "../support/markdown-page.ts";
import { REPOSITORY } from "../support/run-program.ts";

/** Commands read what is typed in full, and then do nothing. */
function idleProgram(): Command {
  const program = new Command("warmpath").exitOverride().configureOutput({ writeOut: () => {}, writeErr: () => {} });
  for (const command of createCommands({} as Terminal)) {
    for (const one of [command, ...command.commands]) {
      one.exitOverride().configureOutput({ writeOut: () => {}, writeErr: () => {} });
      if (one.commands.length === 0) one.action(() => {});
    }
    program.addCommand(command);
  }
  return program;
}

/** What a command has against the way it is called, if anything. */
function complaint(words: readonly string[]): string | undefined {
  try {
    idleProgram().parse(words, { from: "user" });
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    if (code !== "commander.helpDisplayed" && code !== "commander.help") return message;
  }
  const [command, experiment] = words;
  const isPreset = command === "run" && /^[\w-]+$/.test(experiment);
  const places = ["yaml", "suite.yaml"].map((end, at) => join(REPOSITORY, "presets", `${experiment}${"./"[at]}${end}`));
  return isPreset && !places.some((path) => existsSync(path)) ? `there is no preset ${experiment}` : undefined;
}

function refused(lines: readonly string[], source: string): string[] {
  return lines.flatMap((line) =>
    warmpathCalls(line).flatMap((words) => {
      const problem = complaint(words);
      return problem === undefined ? [] : [`${source}: warmpath ${words.join(" ")}: ${problem}`];
    }),
  );
}

test("a call that cannot work is noticed", () => {
  expect(complaint(["gateway", "--workers", "a"])).toContain("--workers");
  expect(complaint(["run", "h300-sweep"])).toBe("there is no preset h300-sweep");
  expect(complaint(["run", "h200-sweep", "--levels", "many"])).toContain("--levels");
});

test("every call of warmpath in the documents is one that the command line takes", () => {
  const pages = markdownFiles(REPOSITORY).map((path) => ({
    path,
    lines: shellLines(readFileSync(join(REPOSITORY, path), "utf8")),
  }));
  const calls = pages.flatMap(({ lines }) => lines.flatMap((line) => warmpathCalls(line)));
  expect(calls.length).toBeGreaterThan(80);
  expect(pages.flatMap(({ path, lines }) => refused(lines, path))).toEqual([]);
});

test("so is every example of a help text", () => {
  const commands = idleProgram().commands.flatMap((command) => [command, ...command.commands]);
  const wrong = commands.flatMap((command) => {
    let help = "";
    command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
    const examples = exampleLines(help);
    return examples.length === 0 ? [`${command.name()}: no example`] : refused(examples, `${command.name()} --help`);
  });
  expect(wrong).toEqual([]);
});

test("every npm script that a document names is there", () => {
  const { scripts } = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")) as { scripts: object };
  const named = markdownFiles(REPOSITORY).flatMap((path) => {
    const text = readFileSync(join(REPOSITORY, path), "utf8");
    return [...text.matchAll(/npm run (?:--silent )?([\w:]+)/g)].map(([, script]) => ({ path, script }));
  });
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter(({ script }) => !Object.hasOwn(scripts, script))).toEqual([]);
});
