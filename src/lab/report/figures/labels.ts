/** A label and the height at which it would like to stand. */
export interface Label {
  readonly text: string;
  readonly wanted: number;
  readonly kind: string;
}

/** A label where it does stand. */
export interface PlacedLabel extends Label {
  readonly y: number;
}

/** Moves labels apart until none covers another, as little as possible, and keeps them between two heights. */
export function placeLabels(labels: readonly Label[], top: number, bottom: number, apart = 15): PlacedLabel[] {
  const placed = labels.toSorted((a, b) => a.wanted - b.wanted).map((label) => ({ ...label, y: label.wanted }));
  for (let i = 0; i < placed.length; i++) {
    const above = i === 0 ? top : placed[i - 1].y + apart;
    placed[i].y = Math.max(placed[i].y, above);
  }
  for (let i = placed.length - 1; i >= 0; i--) {
    const below = i === placed.length - 1 ? bottom : placed[i + 1].y - apart;
    placed[i].y = Math.min(placed[i].y, below);
  }
  return placed;
}
