/** A window shorter than this has no length once its ends are written, and one longer than a day fills the memory. */
export const LEAST_WINDOW_SECONDS = 0.001;
export const MOST_SECONDS = 86_400;
/** All cells are laid out before the first is run. */
export const MOST_RUNS = 10_000;
