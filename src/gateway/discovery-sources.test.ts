import { beforeEach, describe, expect, test } from "vitest";
import type { DiscoveredWorker, DiscoveryListener } from "../planes/discovery/types.ts";
import { DiscoverySources } from "./discovery-sources.ts";

describe("several sources of workers", () => {
  let told: string[];
  let named: DiscoveryListener;
  let registered: DiscoveryListener;

  beforeEach(() => {
    told = [];
    const sources = new DiscoverySources({
      appeared: ({ name, url }) => told.push(`appeared ${name} ${url}`),
      changed: ({ name, url }) => told.push(`changed ${name} ${url}`),
      left: (name) => told.push(`left ${name}`),
      problem: (message) => told.push(message),
    });
    named = sources.add();
    registered = sources.add();
  });

  const at = (url: string, name = "a"): DiscoveredWorker => ({ name, url });

  test("fill one fleet", () => {
    named.appeared(at("http://a"));
    registered.appeared(at("http://b", "b"));
    registered.changed(at("http://c", "b"));
    registered.left("b");
    named.left("a");
    expect(told).toEqual(["appeared a http://a", "appeared b http://b", "changed b http://c", "left b", "left a"]);
  });

  test("neither replace nor remove a worker of the first by its name", () => {
    named.appeared(at("http://a"));
    registered.appeared(at("http://evil"));
    registered.changed(at("http://worse"));
    registered.left("a");
    expect(told).toEqual([
      "appeared a http://a",
      "two workers are named a: http://a counts, http://evil is left out",
      "two workers are named a: http://a counts, http://worse is left out",
    ]);
  });

  test("count in their order, whoever was told of first", () => {
    registered.appeared(at("http://b"));
    named.appeared(at("http://a"));
    registered.left("a");
    expect(told).toEqual([
      "appeared a http://b",
      "changed a http://a",
      "two workers are named a: http://a counts, http://b is left out",
    ]);
  });

  test("have their say when the worker that counted leaves", () => {
    named.appeared(at("http://a"));
    registered.appeared(at("http://b"));
    named.left("a");
    registered.left("a");
    expect(told.slice(2)).toEqual(["changed a http://b", "left a"]);
  });

  test("may tell of the same worker without a word", () => {
    named.appeared(at("http://a"));
    registered.appeared(at("http://a"));
    registered.left("a");
    expect(told).toEqual(["appeared a http://a"]);
  });
});
