/** Checks values against published TypeScript types: a field that the type does not have is a problem, as a wrong value is. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { publishedTypes, repository, run } from "./tools.mjs";

/** In JSON the members of an enumeration are their values. */
const WRITTEN = [
  "type Written<T> = T extends string ? `${T}`",
  "  : T extends readonly (infer Entry)[] ? Written<Entry>[]",
  "  : T extends object ? { [Key in keyof T]: Written<T[Key]> } : T;",
];

/** Each entry has a name to complain under, a value, and the name and module of its type. */
export function typeProblems(entries) {
  if (entries.length === 0) return [];
  const folder = publishedTypes();
  const file = `check-${process.pid}.ts`;
  const lines = [...WRITTEN];
  const starts = entries.map(({ value, type, from }, i) => {
    lines.push(`import type { ${type} as Type${i} } from ${JSON.stringify(from)};`);
    const start = lines.length + 1;
    lines.push(...`export const value${i}: Written<Type${i}> = ${JSON.stringify(value, null, 1)};`.split("\n"));
    return start;
  });
  const config = {
    compilerOptions: {
      noEmit: true,
      strict: true,
      skipLibCheck: true,
      module: "esnext",
      moduleResolution: "bundler",
      target: "es2023",
      types: [],
    },
    files: [file],
  };
  const project = join(folder, `check-${process.pid}.json`);
  writeFileSync(join(folder, file), lines.join("\n"));
  writeFileSync(project, JSON.stringify(config));
  const compiler = join(repository, "node_modules", "typescript", "bin", "tsc");
  const { ok, output } = run(process.execPath, [compiler, "-p", project, "--pretty", "false"], { cwd: folder });
  if (ok) return [];
  return output.split("\n").flatMap((line) => {
    const [, at, said] = /^check-\d+\.ts\((\d+),\d+\): error \w+: (.*)$/.exec(line) ?? [];
    if (at === undefined) return line.startsWith("error") ? [line] : [];
    const entry = entries[starts.findLastIndex((start) => start <= Number(at))];
    return [`${entry?.name ?? "types"}: ${lines[Number(at) - 1].trim()} … ${said}`];
  });
}
