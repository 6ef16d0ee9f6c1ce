/** What tells folders apart: the parts of their paths after those that all have in common. */
export function foldersBelowCommon(paths: readonly string[]): string[][] {
  if (paths.length === 0) return [];
  const parts = paths.map((path) => path.split("/").filter((part) => part !== ""));
  const shortest = Math.min(...parts.map((path) => path.length));
  let common = 0;
  while (common < shortest && parts.every((path) => path[common] === parts[0][common])) common += 1;
  return parts.map((path) => path.slice(common));
}

/** A short name for each folder, different where folders are; the last part of the path where there is one folder. */
export function folderLabels(paths: readonly string[]): string[] {
  const below = foldersBelowCommon(paths);
  return paths.map((path, at) => below[at].join("/") || (path.split("/").findLast((part) => part !== "") ?? path));
}
