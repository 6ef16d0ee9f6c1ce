import { type Block, list, type Section, table, text } from "../document.ts";
import { levelTitle } from "../cell.ts";
import { NOTHING } from "../format.ts";
import type { ReportModel, ReportSource } from "../model.ts";
import { describeArm, describeDifference, differingSettings } from "../settings.ts";

/** Where every number comes from, and the command that makes it again. */
export function provenanceSection(model: ReportModel): Section {
  const blocks: Block[] = [
    table(
      "Input folders",
      ["#", "<Folder", "<Kind", "<Experiment", "<Started", "<Finished", "<Versions", "<Record of each request"],
      model.sources.map((source, at) => [
        String(at + 1),
        source.folder,
        source.kind === "aiperf" ? "AIPerf" : `Warmpath, ${source.target ?? "simulation"}`,
        source.experiment,
        source.startedAt ?? NOTHING,
        source.finishedAt ?? (source.kind === "warmpath" ? "not finished" : NOTHING),
        Object.entries(source.versions)
          .map(([name, version]) => `${name} ${version}`)
          .join(", ") || NOTHING,
        source.records.isComplete ? "complete" : (source.records.remark ?? "missing"),
      ]),
    ),
  ];
  const resumed = model.sources.flatMap(({ resumed: times, folder }) =>
    times.map(
      ({ at, finishedCells }) => `${folder}: cut short and resumed at ${at}, with ${finishedCells} cells finished`,
    ),
  );
  blocks.push(list(resumed), ...digestBlocks(model));
  const commands = model.sources.flatMap(({ command }) => (command === undefined ? [] : [`\`${command}\``]));
  blocks.push(commands.length === 0 ? text("No source says how to repeat it.") : text("To repeat it:"), list(commands));
  blocks.push(
    table(
      "Arms",
      ["<Arm", "<Settings", "<From"],
      model.arms.map(({ name, policy, sources }) => [
        name,
        describeArm(model.sources[sources[0]]?.config, name.split("/").at(-1) ?? name) ??
          policy ??
          "not stated by the source",
        sources.map((source) => `#${source + 1}`).join(", "),
      ]),
    ),
  );
  const differences = model.comparisons.flatMap(({ arm, baseline }) => {
    const [a, b] = [baseline, arm].map((name) => model.arms.find((one) => one.name === name)?.settings);
    if (a === undefined || b === undefined) return [];
    const names = differingSettings(a, b);
    return names.length === 0
      ? [`${arm} and ${baseline}: the same settings`]
      : names.map((name) => `${baseline} → ${arm}: ${describeDifference(name, a, b)}`);
  });
  if (differences.length > 0) blocks.push(text("What differs between the arms:"), list(differences));
  blocks.push(...checkBlocks(model), ...hostBlocks(model.sources), ...configBlocks(model.sources));
  return {
    id: "provenance",
    title: "Provenance",
    blocks: blocks.filter((block) => block.kind !== "list" || block.items.length > 0),
  };
}

/** Whether all arms were asked the same, where the texts of the prompts were kept. */
function digestBlocks({ sources }: ReportModel): Block[] {
  const digests = sources.flatMap(({ promptsDigest }) => promptsDigest ?? []);
  if (digests.length < 2) return [];
  return [
    text(
      new Set(digests).size === 1
        ? `All ${digests.length} runs sent the same prompts (sha256 ${digests[0].slice(0, 16)}… over inputs.json).`
        : "**Runs did not send the same prompts:** their inputs.json differ.",
    ),
  ];
}

/** What was looked at before and after, and did not pass; caches at the start; proof of equal prompts. */
function checkBlocks({ sources, cells }: ReportModel): Block[] {
  const before = sources.flatMap(({ armFacts }) =>
    armFacts.flatMap(({ arm, checks }) =>
      checks
        .filter(({ status }) => status !== "passed")
        .map(({ code, status, detail }) => `${arm}: ${code} ${status}: ${detail}`),
    ),
  );
  const after = cells.flatMap(({ arm, run, level, live }) =>
    (live.checks ?? [])
      .filter(({ status }) => status === "failed")
      .map(({ code, detail }) => `${arm}, ${levelTitle(level)}, run ${run}: ${code} failed: ${detail}`),
  );
  const starts = new Set(
    cells.flatMap(({ live: { cacheStart } }) =>
      cacheStart === undefined ? [] : [`${cacheStart.state} (by ${cacheStart.enforcedBy})`],
    ),
  );
  const proven = cells.flatMap(({ live: { prompts } }) => prompts ?? []);
  const repeated = proven.reduce((sum, { sentBefore }) => sum + sentBefore, 0);
  const equal = proven.reduce((sum, { equalToBefore }) => sum + equalToBefore, 0);
  return [
    ...(before.length + after.length === 0 ? [] : [text("Checks that did not pass:"), list([...before, ...after])]),
    ...(starts.size === 0 ? [] : [text(`Caches at the start of cells: ${[...starts].join(", ")}.`)]),
    ...(proven.length === 0
      ? []
      : [
          text(
            `Prompts, by hash: ${equal.toLocaleString("en-US")} of ${repeated.toLocaleString("en-US")} that several arms were sent were equal.`,
          ),
        ]),
  ];
}

function hostBlocks(sources: readonly ReportSource[]): Block[] {
  const rows = sources.flatMap(({ host }, at) =>
    Object.entries(host).map(([key, value]) => [
      String(at + 1),
      key,
      typeof value === "string" ? value : JSON.stringify(value),
    ]),
  );
  return rows.length === 0 ? [] : [table("Host", ["#", "<Fact", "<Value"], rows)];
}

/** What of the configuration a reader asks for first; results.json has all of it. */
const SHOWN = [
  "about",
  "fleet",
  "workload",
  "load",
  "cacheState",
  "warmUpSeconds",
  "windowSeconds",
  "drainSeconds",
  "snapshots",
  "runs",
  "seed",
  "slo",
  "traceProvenance",
];

function configBlocks(sources: readonly ReportSource[]): Block[] {
  const rows = sources.flatMap(({ config }, at) =>
    SHOWN.flatMap((key) => {
      const value = config?.[key];
      return value === undefined
        ? []
        : [[String(at + 1), key, typeof value === "string" ? value : JSON.stringify(value)]];
    }),
  );
  return rows.length === 0 ? [] : [table("Configuration", ["#", "<Key", "<Value"], rows)];
}
