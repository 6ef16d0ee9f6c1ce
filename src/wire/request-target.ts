const ABSOLUTE = /^https?:\/\/[^/?#]*/i;

/**
 * The path and the query of a request line. Not by `new URL`: whoever sends `//` or `//:1` names no host, and the parser
 * throws.
 */
export function splitTarget(target = "/"): readonly [path: string, query: URLSearchParams] {
  const at = target.indexOf("?");
  return at < 0 ? [target, new URLSearchParams()] : [target.slice(0, at), new URLSearchParams(target.slice(at + 1))];
}

/** The path of a request line alone, also where a client names the host in it, as to a proxy. */
export function pathIn(target = "/"): string {
  const path = (target.startsWith("/") ? target : target.replace(ABSOLUTE, "")).split("?", 1)[0];
  return path === "" ? "/" : path;
}
