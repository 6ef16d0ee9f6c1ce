/**
 * Whether JSON is nested deeper than so many lists and objects. What was parsed without recursion may be deeper than anything
 * that writes, renders or walks it can follow; so this looks at it level by level, and no further than it has to.
 */
export function isDeeperThan(most: number, value: unknown): boolean {
  let level: object[] = typeof value === "object" && value !== null ? [value] : [];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > most) return true;
    const next: object[] = [];
    for (const nest of level) {
      const inner: readonly unknown[] = Array.isArray(nest) ? nest : Object.values(nest);
      for (const each of inner) if (typeof each === "object" && each !== null) next.push(each);
    }
    level = next;
  }
  return false;
}
