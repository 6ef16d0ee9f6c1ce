import { useEffect, useState } from "preact/hooks";

export type Theme = "light" | "dark";

const KEY = "warmpath-theme";

/** What the person chose before, else what the system prefers. */
export function useTheme(): readonly [Theme, () => void] {
  const [theme, setTheme] = useState<Theme>(() => {
    const kept = localStorage.getItem(KEY);
    if (kept === "light" || kept === "dark") return kept;
    return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  });
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  const toggle = (): void => {
    const next = theme === "dark" ? "light" : "dark";
    localStorage.setItem(KEY, next);
    // Charts read colours from the page, so it must have them first.
    document.documentElement.dataset["theme"] = next;
    setTheme(next);
  };
  return [theme, toggle];
}
