/** Reads a Dockerfile, as far as ours goes; an instruction that is not known is an error rather than a guess. */
const KNOWN = new Set([
  "ARG",
  "FROM",
  "WORKDIR",
  "COPY",
  "RUN",
  "ENV",
  "USER",
  "EXPOSE",
  "HEALTHCHECK",
  "ENTRYPOINT",
  "CMD",
]);

/** The stages in order, each with its instructions; ARGs before the first stand apart. */
export function stagesOf(text) {
  const lines = text
    .split("\n")
    .filter((line) => !line.startsWith("#"))
    .join("\n")
    .replaceAll(/\\\n\s*/g, " ")
    .split("\n")
    .filter((line) => line.trim() !== "");
  const args = [];
  const stages = [];
  for (const line of lines) {
    const [, word, rest] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    if (word === undefined || !KNOWN.has(word)) throw new Error(`Dockerfile: cannot read "${line}"`);
    if (word === "FROM") {
      const [, base, name] = /^(\S+) AS (\S+)$/.exec(rest) ?? [];
      if (name === undefined) throw new Error(`Dockerfile: "${line}" names no stage`);
      stages.push({ name, base, instructions: [] });
    } else if (stages.length === 0) args.push(rest);
    else stages.at(-1).instructions.push({ word, rest });
  }
  return { args, stages };
}

/** The last value of an instruction in a stage. */
export function valueOf(stage, wanted) {
  return stage.instructions.findLast(({ word }) => word === wanted)?.rest;
}
