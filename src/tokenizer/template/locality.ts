/**
 * Which templates write each message by itself.
 *
 * Most chat templates are a prologue, one loop over the messages, and an epilogue. Where what the loop writes for a message
 * depends on nothing but the message, its two neighbours, the first messages and the arguments, it need not be written again
 * when the conversation grows. Whether it does is read from the template's syntax tree. Everything that is not known to be
 * harmless counts as harmful: then the whole chat is written every time, which costs time and is never wrong.
 *
 * Allowed in the loop: `loop.first`, `loop.last`, `loop.previtem`, `loop.nextitem`, `loop.index0 % 2`, `loop.index0 == 0`,
 * `messages[loop.index0 ± 1]`, `messages[0]`, and variables that are set before they are read. Before it: `messages[0]` and
 * `set messages = messages[1:]`. After it: `messages[-1]`.
 */

/** A node of the syntax tree, as far as it is looked at. */
export interface Node {
  readonly type: string;
  readonly [name: string]: unknown;
}

/** A template that writes each message by itself. */
export interface Locality {
  /** The loop over the messages, by its place among the template's statements. */
  readonly loopAt: number;
  /** Messages at the start on which all others may depend. */
  readonly head: number;
}

const MUTATING = ["append", "extend", "insert", "pop", "update", "clear", "remove", "setdefault"];
const NEIGHBOURLY = ["first", "last", "previtem", "nextitem"];
/** What carries state from one message to the next, or has a scope that is not looked into. */
const HARMFUL_NODES = ["Break", "Continue", "Macro", "CallStatement", "FilterStatement"];

/** What is known of a template's statements; undefined if messages may depend on more than their neighbours. */
export function localityOf(statements: readonly Node[]): Locality | undefined {
  const loopAt = statements.findIndex(isMessageLoop);
  if (loopAt < 0) return undefined;
  const loop = statements[loopAt];
  const prologue = statements.slice(0, loopAt);
  const epilogue = statements.slice(loopAt + 1);
  const body = loop["body"] as readonly Node[];
  const assigned = new Set(names(body.flatMap((node) => nodesIn(node)).filter(({ type }) => type === "Set")));
  const macros = prologue.flatMap((node) => nodesIn(node)).filter(({ type }) => type === "Macro");
  const isLocal =
    ![...prologue, loop, ...epilogue].flatMap((node) => nodesIn(node)).some(assignsMember) &&
    prologue.every((node) => isHarmlessAround(node, 0)) &&
    epilogue.every((node) => isHarmlessAround(node, -1)) &&
    !macros.flatMap((node) => nodesIn(node)).some((node) => isNamed(node, ...assigned)) &&
    isHarmlessBlock(body, { assigned, isInner: false }, new Set([(loop["loopvar"] as Node)["value"] as string]));
  if (!isLocal) return undefined;
  // Each cut of the list moves `messages[0]` on by one; and the first message has its next neighbour in the head.
  const cuts = prologue.flatMap((node) => nodesIn(node)).filter(isCut).length;
  return { loopAt, head: 2 + cuts };
}

function isMessageLoop(node: Node): boolean {
  return (
    node.type === "For" &&
    (node["loopvar"] as Node).type === "Identifier" &&
    isNamed(node["iterable"] as Node, "messages") &&
    (node["defaultBlock"] as readonly Node[]).length === 0
  );
}

/** Before and after the loop: one message by its constant place, and before it the list without its first. */
function isHarmlessAround(node: Node, place: 0 | -1): boolean {
  if (isNamed(node, "messages", "loop")) return false;
  if (isMessageAt(node, place)) return true;
  if (place === 0 && isCut(node)) return true;
  // The names of inner loops are their own.
  if (node.type === "For") {
    const { iterable, body, defaultBlock } = node as unknown as Record<string, Node & Node[]>;
    const inner = [...body, ...defaultBlock].flatMap((statement) => nodesIn(statement));
    return isHarmlessAround(iterable, place) && !inner.some((one) => isNamed(one, "messages"));
  }
  return childrenOf(node).every((child) => isHarmlessAround(child, place));
}

interface Surroundings {
  /** Variables that the loop sets somewhere; they outlive a message, so reading one before it is set is harmful. */
  readonly assigned: ReadonlySet<string>;
  /** In a loop inside the loop, whose `loop` is its own. */
  readonly isInner: boolean;
}

function isHarmlessBlock(block: readonly Node[], around: Surroundings, known: ReadonlySet<string>): boolean {
  const set = new Set(known);
  for (const node of block) {
    if (!isHarmless(node, around, set)) return false;
    if (node.type === "Set") for (const name of names([node])) set.add(name);
  }
  return true;
}

function isHarmless(node: Node, around: Surroundings, known: ReadonlySet<string>): boolean {
  if (HARMFUL_NODES.includes(node.type) || isNamed(node, "messages", "strftime_now")) return false;
  if (isMessageAt(node, 0)) return true;
  if (node.type === "Identifier") {
    const name = node["value"] as string;
    return name === "loop" ? around.isInner : known.has(name) || !around.assigned.has(name);
  }
  if (!around.isInner && isHarmlessPlace(node)) return true;
  const all = (nodes: readonly Node[]): boolean => nodes.every((child) => isHarmless(child, around, known));
  const block = (name: string): boolean => isHarmlessBlock(node[name] as readonly Node[], around, known);
  if (node.type === "If") return all([node["test"] as Node]) && block("body") && block("alternate");
  if (node.type === "Set") return (node["value"] === null || all([node["value"] as Node])) && block("body");
  if (node.type === "For") {
    const inner = new Set([...known, ...names([{ type: "Set", assignee: node["loopvar"] }])]);
    const within = { ...around, isInner: true };
    return (
      all([node["iterable"] as Node]) &&
      isHarmlessBlock(node["body"] as readonly Node[], within, inner) &&
      block("defaultBlock")
    );
  }
  if (node.type === "MemberExpression" && MUTATING.includes(memberName(node) ?? "")) return false;
  return all(childrenOf(node));
}

/** Where a message stands, said so that leaving out an even number of others does not change it. */
function isHarmlessPlace(node: Node): boolean {
  if (node.type === "MemberExpression") {
    if (isNamed(node["object"] as Node, "loop")) return NEIGHBOURLY.includes(memberName(node) ?? "");
    const property = node["property"] as Node;
    return (
      isNamed(node["object"] as Node, "messages") &&
      node["computed"] === true &&
      ["+", "-"].includes(operatorOf(property)) &&
      isLoopIndex(property["left"] as Node, "index0") &&
      isInteger(property["right"] as Node, 1)
    );
  }
  const left = node["left"] as Node;
  const right = node["right"] as Node;
  const operator = operatorOf(node);
  if (operator === "%") return (isLoopIndex(left, "index0") || isLoopIndex(left, "index")) && isInteger(right, 2);
  if (operator !== "==" && operator !== "!=") return false;
  return (isLoopIndex(left, "index0") && isInteger(right, 0)) || (isLoopIndex(left, "index") && isInteger(right, 1));
}

function isLoopIndex(node: Node, name: "index" | "index0"): boolean {
  return node.type === "MemberExpression" && isNamed(node["object"] as Node, "loop") && memberName(node) === name;
}

function isMessageAt(node: Node, place: number): boolean {
  return (
    node.type === "MemberExpression" &&
    node["computed"] === true &&
    isNamed(node["object"] as Node, "messages") &&
    isInteger(node["property"] as Node, place)
  );
}

/** `set messages = messages[1:]` */
function isCut(node: Node): boolean {
  if (node.type !== "Set" || !isNamed(node["assignee"] as Node, "messages")) return false;
  const value = node["value"] as Node | null;
  if (value?.type !== "MemberExpression" || !isNamed(value["object"] as Node, "messages")) return false;
  const { type, start, stop, step } = value["property"] as Node & Record<"start" | "stop" | "step", Node | undefined>;
  return type === "SliceExpression" && start !== undefined && isInteger(start, 1) && !stop && !step;
}

function assignsMember(node: Node): boolean {
  return node.type === "Set" && (node["assignee"] as Node).type === "MemberExpression";
}

/** The variables that statements set. */
function names(sets: readonly Node[]): string[] {
  return sets
    .flatMap(({ assignee }) => nodesIn(assignee as Node).map(({ value }) => value))
    .filter((value) => typeof value === "string");
}

function isNamed(node: Node, ...variables: readonly string[]): boolean {
  return node.type === "Identifier" && variables.includes(node["value"] as string);
}

function isInteger(node: Node, value: number): boolean {
  return node.type === "IntegerLiteral" && node["value"] === value;
}

function memberName(node: Node): string | undefined {
  const property = node["property"] as Node;
  return node["computed"] === false ? (property["value"] as string) : undefined;
}

function operatorOf(node: Node): string {
  return node.type === "BinaryExpression" ? (node["operator"] as { value: string }).value : "";
}

function nodesIn(node: Node): Node[] {
  return [node, ...childrenOf(node).flatMap(nodesIn)];
}

/** The nodes directly below one; the name in `message.role` is no variable and left out. */
function childrenOf(node: Node): Node[] {
  const values = Object.entries(node).flatMap(([name, value]): unknown[] => {
    if (name === "operator" || (name === "property" && node["computed"] === false)) return [];
    if (value instanceof Map) return [...value].flat();
    return Array.isArray(value) ? value : [value];
  });
  return values.filter(isNode);
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as Node).type === "string";
}
