import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * True if what is installed is not what package-lock.json asks for. Compares contents, not dates: a checkout, a clone and
 * npm itself all touch dates in ways of their own.
 */
export function needsInstall(root) {
  const wanted = packagesOf(join(root, "package-lock.json"));
  if (wanted === undefined) return false;
  const installed = packagesOf(join(root, "node_modules", ".package-lock.json"));
  if (installed === undefined) return true;
  return Object.entries(wanted).some(([path, { version, integrity, optional }]) => {
    if (path === "") return false;
    const present = installed[path];
    // Optional packages are made for other platforms as often as not.
    if (present === undefined) return optional !== true;
    return present.version !== version || present.integrity !== integrity;
  });
}

function packagesOf(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8")).packages;
  } catch {
    return undefined;
  }
}
