/**
 * Writes the tables of docs/reference/policies.md from the registry of policies:
 *
 *   node --import tsx scripts/policies-page.mjs
 *
 * With `--check` it writes nothing, and ends with 1 if the page says anything else than the registry.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { POLICIES } from "../src/core/policy/registry.ts";

const PAGE = fileURLToPath(new URL("../docs/reference/policies.md", import.meta.url));
const [BEGIN, END] = ["<!-- policies -->", "<!-- end policies -->"];

const options = process.argv.slice(2);
if (options.some((option) => option !== "--check")) {
  process.stderr.write("usage: node --import tsx scripts/policies-page.mjs [--check]\n");
  process.exit(2);
}
const text = readFileSync(PAGE, "utf8");
const [before, rest] = text.split(BEGIN);
const [, after] = rest.split(END);
const written = `${before}${BEGIN}\n\n${sections().join("\n\n")}\n\n${END}${after}`;
if (!options.includes("--check")) writeFileSync(PAGE, written);
else if (written !== text) {
  process.stderr.write(
    "docs/reference/policies.md is not what the policies say; run node --import tsx scripts/policies-page.mjs\n",
  );
  process.exitCode = 1;
}

function sections() {
  return POLICIES.flatMap(({ name, about, parameters }) => {
    const knobs = Object.entries(parameters);
    return [`## ${name}`, about, knobs.length === 0 ? "No knobs." : table(knobs.map(row))];
  });
}

function row([name, knob]) {
  const range = knob.kind === "choice" ? knob.choices.map((choice) => `\`${choice}\``).join(", ") : between(knob);
  return [`\`${name}\``, `\`${knob.default}\``, range, fragment(knob.about)];
}

function between({ minimum, maximum }) {
  return `${minimum.toLocaleString("en")} to ${maximum.toLocaleString("en")}`;
}

/** A cell of a table is not a sentence. */
function fragment(about) {
  return about.charAt(0).toLowerCase() + about.slice(1).replace(/\.$/, "");
}

/** Columns as wide as the formatter of this repository makes them. */
function table(rows) {
  const lines = [["knob", "default", "range", "means"], ...rows];
  const widths = lines[0].map((_, at) => Math.max(...lines.map((cells) => cells[at].length)));
  const line = (cells, fill = " ") => `| ${cells.map((cell, at) => cell.padEnd(widths[at], fill)).join(" | ")} |`;
  const [head, ...body] = lines;
  return [
    line(head),
    line(
      head.map(() => ""),
      "-",
    ),
    ...body.map((cells) => line(cells)),
  ].join("\n");
}
