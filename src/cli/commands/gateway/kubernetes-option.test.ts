import { describe, expect, test } from "vitest";
import { kubernetesOptions } from "./kubernetes-option.ts";

const POD = { KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "443" };

describe("--discover kubernetes", () => {
  test("names a service, and where the events of its pods are", () => {
    const options = kubernetesOptions("service=vllm,port=http,events=5557,replay=5558,topic=kv,kv-blocks=1000", POD);
    expect(options.select).toEqual({ service: "vllm" });
    expect(options.port).toBe("http");
    expect(options.access.url).toBe("https://10.96.0.1:443");
    expect(options.describe?.("10.0.0.1", 8000)).toEqual({
      kvBlocks: 1000,
      events: { url: "tcp://10.0.0.1:5557", replayUrl: "tcp://10.0.0.1:5558", topic: "kv" },
    });
  });

  test("names labels, a port, a namespace and a server", () => {
    const written = "label=app=vllm,label=pool=gpu,port=8000,namespace=models,events=http,server=http://127.0.0.1:8001";
    const options = kubernetesOptions(written, {});
    expect(options.select).toEqual({ labels: "app=vllm,pool=gpu" });
    expect(options.port).toBe(8000);
    expect(options.namespace).toBe("models");
    expect(options.access.url).toBe("http://127.0.0.1:8001");
    expect(options.describe?.("10.0.0.1", 8000)).toEqual({ events: { url: "http://10.0.0.1:8000" } });
  });

  test("says whose events are asked for on the workers' own port", () => {
    const options = kubernetesOptions("service=trtllm,events=trtllm", POD);
    expect(options.describe?.("10.0.0.1", 8000)).toEqual({ events: { url: "trtllm+http://10.0.0.1:8000" } });
  });

  test.each([
    ["service=vllm", {}, /not a pod of a cluster/],
    ["port=8000", POD, /give service=NAME or label=/],
    ["service=vllm,label=app=vllm", POD, /give service=NAME or label=/],
    ["service=vllm,prot=8000", POD, /"prot=8000" is none of/],
    ["service=vllm,events=zmq", POD, /events must be a whole number/],
    ["service=vllm,events=70000", POD, /events must be a port/],
    ["service=vllm,replay=5558", POD, /mean nothing without events/],
  ])("refuses %s with one line", (written, environment, message) => {
    expect(() => kubernetesOptions(written, environment)).toThrow(message);
  });
});
