import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { kubernetesOptions } from "../../src/cli/commands/gateway/kubernetes-option.ts";
import { readSettings, settingKeys } from "../../src/cli/commands/gateway/settings.ts";
import { readSettings as readWorkerSettings } from "../../src/cli/commands/worker/settings.ts";
import { readLoadSettings } from "../../src/cli/commands/load/settings.ts";
import { readFileSync } from "node:fs";
import type { SkippableTest } from "../support/required-component.ts";
import { REPOSITORY } from "../support/run-program.ts";

const CHART = join(REPOSITORY, "deploy", "helm", "warmpath");
/** What the chart sets by itself, secrets by where it mounts them; workers are found and not listed. */
const THE_CHARTS_OWN = [
  "host",
  "port",
  "adminHost",
  "adminPort",
  "discover",
  "drainSeconds",
  "worker",
  "adminTokenFile",
  "apiKeys",
  "upstreamKeyFile",
  "tlsCert",
  "tlsKey",
];
const POD = { KUBERNETES_SERVICE_HOST: "10.96.0.1" };

interface Container {
  readonly args?: readonly string[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
}

interface Volume {
  readonly name: string;
  readonly secret?: { readonly secretName: string };
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly template?: {
      readonly spec: { readonly containers: readonly Container[]; readonly volumes?: readonly Volume[] };
    };
  };
}

interface Rendered {
  readonly name: string;
  readonly manifests?: string;
  readonly problem?: string;
}

/** Every example as Helm renders it; without Helm the test is skipped, unless everything must run. */
async function rendered(context: SkippableTest): Promise<readonly { name: string; objects: Manifest[] }[]> {
  const script = pathToFileURL(join(REPOSITORY, "scripts", "check-deploy", "chart.mjs")).href;
  const { renderedExamples } = (await import(script)) as { renderedExamples: (folder: string) => Rendered[] };
  try {
    return renderedExamples(REPOSITORY).map(({ name, manifests = "", problem }) => {
      if (problem !== undefined) throw new Error(`${name}: ${problem}`);
      return { name, objects: parseAllDocuments(manifests).flatMap((one) => (one.toJS() as Manifest | null) ?? []) };
    });
  } catch (error) {
    const isMissing = (error as Error).constructor.name === "MissingTool";
    if (isMissing && process.env["WARMPATH_REQUIRE_ALL"] !== "1") context.skip((error as Error).message);
    throw error;
  }
}

/** `--name=value` flags as the command line hands them to a command. */
function flagsOf(words: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    words.map((word) => {
      const [, name, value = true] = /^--([a-z-]+)(?:=(.*))?$/.exec(word) ?? [];
      if (name === undefined) throw new Error(`${word} is no flag`);
      return [name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase()), value];
    }),
  );
}

test("every example's gateway, workers and load are given what their commands take", async (context) => {
  let read = 0;
  for (const { objects } of await rendered(context)) {
    for (const { kind, data, spec } of objects) {
      const settings = data?.["gateway.yaml"];
      if (kind === "ConfigMap" && settings !== undefined) {
        const { discover = "" } = readSettings(parse(settings) as Record<string, unknown>);
        kubernetesOptions(discover.replace(/^kubernetes:/, ""), POD);
        read += 1;
      }
      for (const { args = [] } of spec?.template?.spec.containers ?? []) {
        const [command, ...flags] = args;
        if (command === "worker") readWorkerSettings(flagsOf(flags));
        else if (command === "load") {
          readLoadSettings(flagsOf(flags.map((flag) => flag.replaceAll("$(JOB_COMPLETION_INDEX)", "3"))));
        } else continue;
        read += 1;
      }
    }
  }
  expect(read).toBeGreaterThanOrEqual(8);
});

test("the values' schema knows every setting of the gateway that is not the chart's own", () => {
  interface Schema {
    readonly properties: Readonly<Record<string, Schema>>;
  }
  const schema = JSON.parse(readFileSync(join(CHART, "values.schema.json"), "utf8")) as Schema;
  const known = Object.keys(schema.properties["gateway"].properties["settings"].properties);
  const keys = settingKeys().map(({ key }) => key);
  expect(known.toSorted()).toEqual(keys.filter((key) => !THE_CHARTS_OWN.includes(key)).toSorted());
});

test("every secret that the gateway is told to read is mounted where it reads it, and no other", async (context) => {
  const secured = (await rendered(context)).find(({ name }) => name === "secured")?.objects ?? [];
  const settings = parse(secured.flatMap(({ data }) => data?.["gateway.yaml"] ?? [])[0]) as Record<string, string>;
  const read = ["adminTokenFile", "apiKeys", "upstreamKeyFile", "tlsCert", "tlsKey"].map((key) => settings[key]);
  const pod = secured.find(({ kind }) => kind === "Deployment")?.spec?.template?.spec;
  const mounted = (pod?.volumes ?? []).flatMap(({ name, secret }) => {
    const path = pod?.containers[0].volumeMounts?.find((mount) => mount.name === name)?.mountPath;
    return secret === undefined ? [] : [`${path}: ${secret.secretName}`];
  });
  expect(mounted.toSorted()).toEqual([
    "/etc/warmpath-secrets/admin-token: warmpath-admin",
    "/etc/warmpath-secrets/api-keys: warmpath-api-keys",
    "/etc/warmpath-secrets/tls: warmpath-tls",
    "/etc/warmpath-secrets/upstream-key: engine-api-key",
  ]);
  expect(read).toEqual([
    "/etc/warmpath-secrets/admin-token/token",
    "/etc/warmpath-secrets/api-keys/keys.yaml",
    "/etc/warmpath-secrets/upstream-key/api-key",
    "/etc/warmpath-secrets/tls/tls.crt",
    "/etc/warmpath-secrets/tls/tls.key",
  ]);
  expect(settings["adminHost"]).toBe("0.0.0.0");
});
