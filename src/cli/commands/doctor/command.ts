import { Command } from "commander";
import { WarmpathError } from "../../../core/errors.ts";
import { checkFleet, type Finding } from "../../../lab/preflight/fleet-checks.ts";
import { NegativeVerdict } from "../../negative-verdict.ts";
import type { Terminal } from "../../terminal.ts";
import { startDecider, startProxy } from "../gateway/compose.ts";
import { resolveSettings } from "../gateway/setting-sources.ts";
import { settled } from "../gateway/settled-settings.ts";
import { examine, type ExaminedGateway } from "./examine.ts";

interface DoctorOptions {
  readonly gateway: string;
  readonly admin: string;
  readonly worker?: readonly string[];
  readonly tokenizer?: string;
  readonly blockTokens?: string;
  readonly eventPlane?: string;
  readonly json?: boolean;
}

const READY_WITHIN_MS = 8000;
const LOOK_MS = 50;

/** `warmpath doctor`: would a comparison of policies here mean anything? */
export function doctorCommand(terminal: Terminal): Command {
  return new Command("doctor")
    .description("Check a gateway, or a set of engines, before policies are compared on it.")
    .option("--gateway <url>", "gateway to examine", "http://127.0.0.1:8000")
    .option("--admin <url>", "its admin API", "http://127.0.0.1:8900")
    .option("--worker <value>", "examine these engines instead, behind a gateway of its own; repeatable", collect)
    .option("--tokenizer <value>", "with --worker: as of the gateway")
    .option("--block-tokens <value>", "with --worker: as of the gateway")
    .option("--event-plane <value>", "with --worker: as of the gateway")
    .option("--json", "print the findings as JSON")
    .helpOption("-h, --help", "print this help")
    .addHelpText(
      "after",
      [
        "",
        "Sends each worker two short prompts, and one through the gateway. Exit code 1 if a comparison would be meaningless.",
        "Keys are read from WARMPATH_API_KEY (of the gateway), WARMPATH_UPSTREAM_KEY (of engines) and WARMPATH_ADMIN_TOKEN.",
        "",
        "Examples:",
        "  $ warmpath doctor",
        "  $ warmpath doctor --worker gpu1=http://gpu1:8000,events=tcp://gpu1:5557 --tokenizer ./model --json",
      ].join("\n"),
    )
    .action((options: DoctorOptions) => diagnose(options, terminal));
}

async function diagnose(options: DoctorOptions, terminal: Terminal): Promise<void> {
  const examined = options.worker === undefined ? named(options) : await ownGateway(options, terminal);
  let findings: Finding[];
  try {
    findings = checkFleet(await examine(examined));
  } finally {
    await examined.close();
  }
  const isMeaningless = findings.some(({ status, isFatal }) => status === "failed" && isFatal);
  if (options.json === true) terminal.print(JSON.stringify({ isMeaningful: !isMeaningless, findings }, null, 2));
  else for (const line of findingLines(findings, isMeaningless, terminal)) terminal.print(line);
  if (isMeaningless) throw new NegativeVerdict();
}

type Examined = ExaminedGateway & { close(): Promise<void> };

function named({ gateway, admin }: DoctorOptions): Examined {
  for (const [option, url] of [
    ["--gateway", gateway],
    ["--admin", admin],
  ]) {
    if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
      throw new WarmpathError(
        "WP_INVALID_INPUT",
        `${option} must be an http:// or https:// URL, got ${JSON.stringify(url)}`,
      );
    }
  }
  return { url: new URL(gateway).origin, adminUrl: new URL(admin).origin, close: () => Promise.resolve() };
}

/** A gateway before the engines, as a user would start it, for the time of the examination. */
async function ownGateway(options: DoctorOptions, terminal: Terminal): Promise<Examined> {
  const { worker, tokenizer, blockTokens, eventPlane } = options;
  const given = Object.entries({ worker, tokenizer, blockTokens, eventPlane }).filter(
    ([, value]) => value !== undefined,
  );
  const flags = { ...Object.fromEntries(given), port: 0, adminPort: 0, drainSeconds: 0 };
  const resolved = await resolveSettings({ flags, environment: process.env, file: undefined });
  const { settings } = await settled(resolved.settings);
  const deciding = await startDecider(settings, (line) => terminal.printError(line));
  const proxy = await startProxy(settings, deciding.front);
  const untilMs = performance.now() + READY_WITHIN_MS;
  const { decider } = deciding;
  while (performance.now() < untilMs && decider.readiness().workers.ready < decider.readiness().workers.total) {
    await new Promise((resolve) => {
      setTimeout(resolve, LOOK_MS);
    });
  }
  return {
    url: proxy.url,
    adminUrl: deciding.adminUrl,
    close: async () => {
      await proxy.close();
      await deciding.close();
    },
  };
}

function findingLines(findings: readonly Finding[], isMeaningless: boolean, { colours }: Terminal): string[] {
  const marks = {
    passed: colours.green("ok     "),
    failed: colours.red("FAILED "),
    unavailable: colours.yellow("unknown"),
  };
  const width = Math.max(...findings.map(({ code }) => code.length));
  const below = " ".repeat(width + 11);
  const lines = findings.flatMap(({ code, status, detail, advice, guide }) => [
    `${marks[status]}  ${code.padEnd(width)}  ${detail}`,
    ...(advice === undefined ? [] : [`${below}${colours.bold("do:")} ${advice}`]),
    ...(guide === undefined ? [] : [`${below}${colours.dim(guide)}`]),
  ]);
  const verdict = isMeaningless
    ? colours.red("A comparison of policies here would be meaningless.")
    : colours.green("Nothing speaks against a comparison of policies here.");
  return [...lines, "", verdict];
}

function collect(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}
