/** What is found of each candidate of one decision, by its place among them. */
export class Offers {
  /** What it costs as things are, and what it would if it held as much of the prompt as the best holder does. */
  costs: Float64Array = new Float64Array(64);
  warmCosts: Float64Array = new Float64Array(64);
  /** How much of the former is for what it would compute once more, blocks it counts as holding, and how urgent it is there. */
  wastes: Float64Array = new Float64Array(64);
  held: Float64Array = new Float64Array(64);
  urgencies: Float64Array = new Float64Array(64);
  /** When the first token would come, and what that costs for being late. */
  firstTokensNs: Float64Array = new Float64Array(64);
  lateness: Float64Array = new Float64Array(64);
  /** By how much it is above the cheapest where candidates take turns. */
  overlooked: Float64Array = new Float64Array(64);

  makeRoom(count: number): void {
    if (count <= this.costs.length) return;
    this.costs = new Float64Array(2 * count);
    this.warmCosts = new Float64Array(2 * count);
    this.wastes = new Float64Array(2 * count);
    this.held = new Float64Array(2 * count);
    this.urgencies = new Float64Array(2 * count);
    this.firstTokensNs = new Float64Array(2 * count);
    this.lateness = new Float64Array(2 * count);
    this.overlooked = new Float64Array(2 * count);
  }
}
