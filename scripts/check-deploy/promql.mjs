/** Which metrics and labels a PromQL query names. Not a parser: enough of one for queries without labels that look like metrics. */
const GROUPING = /\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;
const WORDS = new Set(["and", "or", "unless", "bool", "offset", "by", "without", "on", "ignoring", "inf", "nan"]);
const NAME = /[A-Za-z_:][\w:]*/g;

export function namesIn(query, legend = "") {
  const labels = new Set([...legend.matchAll(/\{\{\s*(\w+)\s*\}\}/g)].map(([, name]) => name));
  const rest = query
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')
    .replaceAll(/\{([^}]*)\}/g, (_, matchers) => {
      for (const [, name] of matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)) labels.add(name);
      return "";
    })
    .replaceAll(GROUPING, (_, _word, names) => {
      for (const [name] of names.matchAll(NAME)) labels.add(name);
      return " ";
    })
    .replaceAll(/\[[^\]]*\]/g, "")
    // Functions and aggregations have brackets after them.
    .replaceAll(/[A-Za-z_]\w*\s*\(/g, "(");
  const metrics = new Set(
    [...rest.matchAll(NAME)].map(([name]) => name).filter((name) => !WORDS.has(name.toLowerCase())),
  );
  return { metrics: [...metrics], labels: [...labels] };
}
