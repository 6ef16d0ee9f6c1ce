/** One line of the record: a parser that bore so many cases. */
export interface FuzzRecord {
  readonly parser: string;
  readonly cases: number;
  readonly seed: number;
  /** Day, as in 2026-11-15. */
  readonly day: string;
}

const HEAD = "| parser | cases | seed | day | result |";
const TITLE = "## Record";

/** The page with this run in its record, in place of an earlier one of the same parser. */
export function recorded(page: string, { parser, cases, seed, day }: FuzzRecord): string {
  const at = page.indexOf(TITLE);
  if (at < 0) throw new Error(`the page has no "${TITLE}"`);
  const text = page.slice(at).split("\n");
  const others = text.filter((line) => line.startsWith("| `") && !line.startsWith(`| \`${parser}\` `));
  const words = text
    .filter((line) => !line.startsWith("|"))
    .join("\n")
    .trimEnd();
  const row = `| \`${parser}\` | ${cases} | ${seed} | ${day} | no crash, no hang |`;
  const table = [HEAD, "| --- | --- | --- | --- | --- |", ...others, row];
  return `${page.slice(0, at)}${words}\n\n${table.join("\n")}\n`;
}
