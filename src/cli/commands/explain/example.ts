/**
 * The worked example of the NVIDIA Dynamo demo on H200 that Warmpath starts from: a prompt of 100 blocks and three
 * workers. The costs are 90, 30 and 99, so worker 2 is chosen.
 */
export const EXAMPLE_DECISION: unknown = {
  policy: "kv-cost",
  parameters: { form: "mission", overlap_score_weight: 1 },
  request: { promptBlocks: 100 },
  candidates: [
    { worker: "worker 1", cachedBlocks: 20, decodeBlocks: 10 },
    { worker: "worker 2", cachedBlocks: 75, decodeBlocks: 5 },
    { worker: "worker 3", cachedBlocks: 10, decodeBlocks: 9 },
  ],
};
