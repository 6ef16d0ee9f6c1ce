/** Empties a list that is filled again at once; setting its length would give back memory that it needs. */
export function emptyList(list: unknown[]): void {
  while (list.length > 0) list.pop();
}
