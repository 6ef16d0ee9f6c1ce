/** Lines of the fences of a page that a shell is to run, those that go on joined. */
export function shellLines(text: string): string[] {
  const fences = [...text.matchAll(/^```(?:sh|bash)\n([^]*?)^```/gm)].map(([, content]) => content);
  return fences.flatMap((content) => content.replaceAll("\\\n", " ").split("\n"));
}

/** Lines of a help text that show how a command is called, those that go on joined. */
export function exampleLines(help: string): string[] {
  return [...help.replaceAll(/ *\\\n */g, " ").matchAll(/^ *\$ (.+)$/gm)].map(([, line]) => line);
}

/** The words after `warmpath` in every call of it in a line; quotes are taken off, comments and other programs left out. */
export function warmpathCalls(line: string): string[][] {
  const calls: string[][] = [];
  let call: string[] | undefined;
  let isFirst = true;
  for (const [written] of line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)) {
    if (written.startsWith("#")) break;
    if (/^(?:[|&;]+|do|done)$/.test(written)) {
      call = undefined;
      isFirst = true;
    } else if (call !== undefined) call.push(written.replaceAll(/'([^']*)'|"([^"]*)"/g, "$1$2"));
    else if (isFirst && written === "warmpath") calls.push((call = []));
    else isFirst &&= written === "npx" || /^[A-Z_]+=/.test(written);
  }
  return calls;
}
