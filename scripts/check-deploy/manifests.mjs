/**
 * Rendered manifests: Kubernetes' own kinds against its published schemas, those of the Prometheus operator and of the
 * Gateway API against published types. Dynamo publishes no schema as a package, so of its graphs the pods in them are checked.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parseAllDocuments, stringify } from "yaml";
import { renderedExamples } from "./chart.mjs";
import { kubernetesValidate, temporaryFolder } from "./tools.mjs";
import { typeProblems } from "./typed.mjs";

const TYPED = {
  "monitoring.coreos.com/v1": "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1",
  "gateway.networking.k8s.io/v1": "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1",
};
const ARMS = ["router-on-deployment.yaml", "router-off-deployment.yaml"];
const MODE = /(?<="DYN_ROUTER_MODE","value":)"[^"]+"/g;
const GRAPH = /^nvidia\.com\/v1(alpha|beta)1$/;

export async function checkManifests(folder) {
  const problems = armProblems(folder);
  const objects = [];
  for (const { name, manifests, problem } of renderedExamples(folder)) {
    if (problem !== undefined) problems.push(`${name}: ${problem}`);
    else objects.push(...objectsIn(name, manifests, problems));
  }
  for (const path of manifestFiles(folder)) {
    const source = relative(folder, path).replaceAll("/", "_");
    objects.push(...objectsIn(source, readFileSync(path, "utf8"), problems));
  }
  const typed = objects.filter(({ object }) => object.apiVersion in TYPED);
  const graphs = objects.filter(({ object }) => GRAPH.test(object.apiVersion));
  const own = objects.filter((one) => !typed.includes(one) && !graphs.includes(one));
  problems.push(...schemaProblems([...own, ...graphs.flatMap(podsOf)]));
  problems.push(...typeProblems(typed.map(typeOf)));
  return { problems, note: `${own.length} objects, ${typed.length} of operators, ${graphs.length} graphs' pods` };
}

function objectsIn(source, text, problems) {
  return parseAllDocuments(text).flatMap((document) => {
    for (const error of document.errors) problems.push(`${source}: ${error.message}`);
    const object = document.toJS();
    return document.errors.length > 0 || object === null ? [] : [{ source, object }];
  });
}

/** Manifests that are applied as they are. */
function manifestFiles(folder) {
  const found = [join(folder, "deploy", "prometheus", "alerts.yaml")];
  for (const place of armFolders(folder)) {
    const names = readdirSync(place).filter((name) => name.endsWith(".yaml") && !name.startsWith("experiment"));
    found.push(...names.map((name) => join(place, name)));
  }
  return found;
}

/** Folders with the two arms of a comparison on Dynamo. */
function armFolders(folder) {
  const root = join(folder, "examples", "dynamo-ab");
  if (!existsSync(root)) return [];
  const below = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return [root, ...below.map(({ name }) => join(root, name))].filter((place) => existsSync(join(place, ARMS[0])));
}

/** Two arms that differ in more than what is compared prove nothing. */
function armProblems(folder) {
  return armFolders(folder).flatMap((place) => {
    const [on, off] = ARMS.map((name) => join(place, name)).map((path) => readFileSync(path, "utf8"));
    const rest = (text) =>
      JSON.stringify(parseAllDocuments(text).map((document) => document.toJS())).replaceAll(MODE, "");
    if (on === off) return [`${place}: both arms have the same mode`];
    return rest(on) === rest(off) ? [] : [`${place}: the arms differ in more than DYN_ROUTER_MODE`];
  });
}

/** One file for each source, so that the validator's words name it. */
function schemaProblems(objects) {
  const place = temporaryFolder();
  const files = [...new Set(objects.map(({ source }) => source))].map((source) => {
    const own = objects.filter((one) => one.source === source);
    const file = join(place, source);
    writeFileSync(file, own.map(({ object }) => stringify(object)).join("---\n"));
    return file;
  });
  const { ok, output } = kubernetesValidate(files);
  if (ok) return [];
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => line.replaceAll(`${place}/`, ""));
}

function typeOf({ source, object }) {
  return {
    name: `${source}: ${object.kind} ${object.metadata.name}`,
    value: object,
    type: `I${object.kind}`,
    from: `${TYPED[object.apiVersion]}/${object.kind}`,
  };
}

/** The pods of a graph, as pods of their own. */
function podsOf({ source, object }) {
  const { components = [], services = {} } = object.spec;
  const templates = [
    ...components.map(({ name, podTemplate }) => [name, podTemplate?.spec]),
    ...Object.entries(services).map(([name, { extraPodSpec }]) => [name, withoutMain(extraPodSpec)]),
  ];
  return templates.flatMap(([name, spec]) => {
    if (spec === undefined) return [];
    const metadata = { name: `${object.metadata.name}-${name.toLowerCase()}` };
    return [{ source, object: { apiVersion: "v1", kind: "Pod", metadata, spec } }];
  });
}

/** The older form has the main container apart from the others, and its name is given. */
function withoutMain(extraPodSpec) {
  if (extraPodSpec === undefined) return undefined;
  const { mainContainer, containers = [], ...rest } = extraPodSpec;
  return { ...rest, containers: [{ name: "main", ...mainContainer }, ...containers] };
}
