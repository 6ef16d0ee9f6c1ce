/**
 * Which templates only copy what messages say.
 *
 * Most chat templates put a message's content between two frames and look no further into it than whether it is empty, or has
 * a mark such as `</think>` in it. How such a template writes a chat follows from the roles alone, so it is learnt once for
 * every order of roles and filled in from then on; see shape-writer.ts. Whether a template is one of these is read from
 * its syntax tree, by following where content goes. Everything that is not known to be harmless counts as harmful: then the
 * template is run every time, which costs time and is never wrong.
 *
 * Content may be written, joined to other text, stripped, put into variables, asked whether it is empty or a string, and
 * searched for literal texts; the last are collected, and chats that have one of them are left to the template.
 */
import type { Node } from "./locality.ts";

/** What an expression may stand for: content, a message, all messages, or nothing that comes from them but roles. */
type Kind = "plain" | "text" | "message" | "messages";

const STRIPPING = ["strip", "lstrip", "rstrip", "trim"];
const SEARCHING = ["startswith", "endswith"];
const TYPE_TESTS = ["string", "defined", "undefined", "none", "mapping", "iterable", "number", "boolean", "callable"];
const CHANGING = ["strftime_now"];

/** The texts that content must not have for the template to copy it; undefined if it does more than copy. */
export function searchedTexts(statements: readonly Node[]): readonly string[] | undefined {
  const reader = new ContentReader();
  return reader.onlyCopies(statements) ? [...reader.searched] : undefined;
}

class ContentReader {
  readonly searched = new Set<string>();
  readonly #kinds = new Map<string, Kind>([["messages", "messages"]]);
  #isHarmless = true;
  #isMacro = false;
  #hasChanged = true;

  /** Goes through the template until nothing new is learnt of its variables. */
  onlyCopies(statements: readonly Node[]): boolean {
    while (this.#isHarmless && this.#hasChanged) {
      this.#hasChanged = false;
      this.#block(statements);
    }
    return this.#isHarmless;
  }

  #block(statements: readonly Node[]): void {
    for (const statement of statements) this.#statement(statement);
  }

  #statement(node: Node): void {
    switch (node.type) {
      case "If":
        this.#condition(node["test"] as Node);
        if (!this.#isNever(node["test"] as Node)) this.#block(node["body"] as Node[]);
        this.#block(node["alternate"] as Node[]);
        break;
      case "For":
        this.#loop(node);
        break;
      case "Set":
        this.#set(node);
        break;
      case "Macro":
        this.#isMacro = true;
        for (const parameter of node["args"] as Node[]) this.#bind(...this.#parameter(parameter));
        this.#block(node["body"] as Node[]);
        this.#isMacro = false;
        break;
      case "Comment":
      case "Break":
      case "Continue":
        break;
      default: {
        const kind = this.#kind(node);
        // What a macro writes is a value to whoever calls it, and not followed from there.
        if (kind !== "plain" && (kind !== "text" || this.#isMacro)) this.#harm();
      }
    }
  }

  #parameter(node: Node): [Node, Kind] {
    if (node.type !== "KeywordArgumentExpression") return [node, "plain"];
    return [node["key"] as Node, this.#plain(node["value"] as Node)];
  }

  #loop(node: Node): void {
    const iterable = node["iterable"] as Node;
    const isChoice = iterable.type === "SelectExpression";
    const list = this.#kind(isChoice ? (iterable["lhs"] as Node) : iterable);
    const variable = node["loopvar"] as Node;
    if (list === "messages") this.#bind(variable, "message");
    else if (list === "plain") this.#bind(variable, "plain");
    else this.#harm();
    if (isChoice) this.#condition(iterable["test"] as Node);
    this.#block(node["body"] as Node[]);
    this.#block(node["defaultBlock"] as Node[]);
  }

  #set(node: Node): void {
    const value = node["value"] as Node | null;
    const assignee = node["assignee"] as Node;
    if (value === null) this.#harm();
    else if (assignee.type === "Identifier") this.#bind(assignee, this.#kind(value));
    else this.#plain(value);
  }

  /** Notes what a variable may stand for; what it stands for in one place it may stand for everywhere. */
  #bind(variable: Node, kind: Kind): void {
    if (variable.type === "TupleLiteral") {
      for (const one of variable["value"] as Node[]) this.#bind(one, kind === "plain" ? kind : this.#harm());
      return;
    }
    const name = variable["value"] as string;
    const before = this.#kinds.get(name) ?? "plain";
    const joined = this.#either(before, kind);
    if (joined === this.#kinds.get(name)) return;
    this.#kinds.set(name, joined);
    this.#hasChanged = true;
  }

  #either(one: Kind, other: Kind): Kind {
    if (one === other || other === "plain") return one;
    return one === "plain" ? other : this.#harm();
  }

  /** Where only yes or no matters, anything may stand. */
  #condition(node: Node): void {
    if (["and", "or"].includes(operatorOf(node))) {
      this.#condition(node["left"] as Node);
      this.#condition(node["right"] as Node);
    } else this.#kind(node);
  }

  /** Whether a condition does not hold for content without the texts that are searched for. */
  #isNever(node: Node): boolean {
    const [left, right] = [node["left"] as Node, node["right"] as Node];
    if (operatorOf(node) === "and") return this.#isNever(left) || this.#isNever(right);
    if (operatorOf(node) === "in") return left.type === "StringLiteral" && this.#kind(right) === "text";
    return node.type === "CallExpression" && this.#isSearch(node);
  }

  #plain(...nodes: readonly (Node | undefined | null)[]): Kind {
    for (const node of nodes) if (node && this.#kind(node) !== "plain") this.#harm();
    return "plain";
  }

  #kind(node: Node): Kind {
    switch (node.type) {
      case "StringLiteral":
      case "IntegerLiteral":
      case "FloatLiteral":
        return "plain";
      case "ArrayLiteral":
      case "TupleLiteral":
        return this.#plain(...(node["value"] as Node[]));
      case "ObjectLiteral":
        return this.#plain(...[...(node["value"] as Map<Node, Node>)].flat());
      case "KeywordArgumentExpression":
        return this.#plain(node["value"] as Node);
      case "SliceExpression":
        return this.#plain(node["start"] as Node, node["stop"] as Node, node["step"] as Node);
      case "Identifier": {
        const name = node["value"] as string;
        return CHANGING.includes(name) ? this.#harm() : (this.#kinds.get(name) ?? "plain");
      }
      case "MemberExpression":
        return this.#member(node);
      case "CallExpression":
        return this.#call(node);
      case "FilterExpression":
        return this.#filter(node);
      case "BinaryExpression":
        return this.#binary(node);
      case "UnaryExpression":
        this.#condition(node["argument"] as Node);
        return (node["operator"] as { value: string }).value === "not"
          ? "plain"
          : this.#plain(node["argument"] as Node);
      case "TestExpression": {
        const kind = this.#kind(node["operand"] as Node);
        const name = (node["test"] as Node)["value"] as string;
        return kind === "plain" || TYPE_TESTS.includes(name) ? "plain" : this.#harm();
      }
      case "Ternary":
        this.#condition(node["condition"] as Node);
        return this.#either(this.#kind(node["trueExpr"] as Node), this.#kind(node["falseExpr"] as Node));
      default:
        return this.#harm();
    }
  }

  #member(node: Node): Kind {
    const object = node["object"] as Node;
    const property = node["property"] as Node;
    const name = memberName(node);
    if (isNamed(object, "loop") && ["previtem", "nextitem"].includes(name ?? "")) return "message";
    switch (this.#kind(object)) {
      case "plain":
        return name === undefined ? this.#plain(property) : "plain";
      case "message":
        return name === "content" ? "text" : name === undefined ? this.#harm() : "plain";
      case "messages":
        if (node["computed"] !== true) return this.#harm();
        this.#plain(property);
        return property.type === "SliceExpression" ? "messages" : "message";
      case "text":
        return this.#harm();
    }
  }

  #call(node: Node): Kind {
    const callee = node["callee"] as Node;
    const given = node["args"] as readonly Node[];
    this.#plain(...given);
    if (callee.type !== "MemberExpression") return this.#plain(callee);
    const name = memberName(callee) ?? "";
    switch (this.#kind(callee["object"] as Node)) {
      case "plain":
        return "plain";
      case "text":
        if (STRIPPING.includes(name)) return "text";
        if (!this.#isSearch(node)) return this.#harm();
        this.searched.add(given[0]["value"] as string);
        return "plain";
      case "message":
        if (name !== "get" || given[0]?.type !== "StringLiteral") return this.#harm();
        return given[0]["value"] === "content" ? "text" : "plain";
      case "messages":
        return this.#harm();
    }
  }

  /** `content.startswith('…')` */
  #isSearch(call: Node): boolean {
    const callee = call["callee"] as Node;
    const given = call["args"] as readonly Node[];
    return (
      callee.type === "MemberExpression" &&
      SEARCHING.includes(memberName(callee) ?? "") &&
      given.length === 1 &&
      isSearchable(given[0]) &&
      this.#kind(callee["object"] as Node) === "text"
    );
  }

  #filter(node: Node): Kind {
    const filter = node["filter"] as Node;
    const name = (filter.type === "CallExpression" ? (filter["callee"] as Node) : filter)["value"] as string;
    if (filter.type === "CallExpression") this.#plain(...(filter["args"] as Node[]));
    const kind = this.#kind(node["operand"] as Node);
    if (kind === "text" && name === "trim") return "text";
    if (kind === "messages" && ["first", "last"].includes(name)) return "message";
    return kind === "plain" || (kind === "messages" && name === "length") ? "plain" : this.#harm();
  }

  #binary(node: Node): Kind {
    const [left, right] = [node["left"] as Node, node["right"] as Node];
    const [one, other] = [this.#kind(left), this.#kind(right)];
    const operator = operatorOf(node);
    if (one === "plain" && other === "plain") return "plain";
    if (operator === "in" || operator === "not in") {
      if (other === "text" && isSearchable(left)) this.searched.add(left["value"] as string);
      else if (other !== "message" || left.type !== "StringLiteral") this.#harm();
      return "plain";
    }
    const isText = (kind: Kind): boolean => kind === "plain" || kind === "text";
    return ["+", "~", "and", "or"].includes(operator) && isText(one) && isText(other) ? "text" : this.#harm();
  }

  #harm(): Kind {
    this.#isHarmless = false;
    return "plain";
  }
}

/** A text that can be searched for; the empty one is in every other. */
function isSearchable(node: Node): boolean {
  return node.type === "StringLiteral" && node["value"] !== "";
}

/** The name of a member, where it does not depend on anything. */
function memberName(node: Node): string | undefined {
  const property = node["property"] as Node;
  if (node["computed"] === true && property.type !== "StringLiteral") return undefined;
  return property["value"] as string;
}

function operatorOf(node: Node): string {
  return node.type === "BinaryExpression" ? (node["operator"] as { value: string }).value : "";
}

function isNamed(node: Node, name: string): boolean {
  return node.type === "Identifier" && node["value"] === name;
}
