/**
 * The path and the query of a request line. Not by `new URL`: whoever sends `//` or `//:1` names no host, and the parser
 * throws.
 */
export function splitTarget(target = "/"): readonly [path: string, query: URLSearchParams] {
  const at = target.indexOf("?");
  return at < 0 ? [target, new URLSearchParams()] : [target.slice(0, at), new URLSearchParams(target.slice(at + 1))];
}
